// Package fieldnames gives a database as its records are read: fields that were renamed keep in the store the name that they
// had first, so that a rename moves nothing, is done at once, and leaves an instance that still serves the config before as
// right as one that serves the new one. What goes to the store is said by what fields are stored as (the methods Stored of
// packages mql and pipeline do that), what comes from it gets its names back.
//
// Start reading at Wrap; document.Names says what names are. What does not live here: which fields were renamed
// (pkg/project), and files, which have folders by what fields are stored as (pkg/media).
package fieldnames
