// Package imagefilter makes of a stored picture the one that a named filter of a collection describes: Compile turns the
// config of a collection's filters into Filters, and Filter.Apply runs one on a file.
//
// A picture goes one way through the package: inspect.go reads the header (type, size, orientation) and refuses what is too
// large before anything is decoded; decode.go decodes it and raster.go gives its rows as NRGBA, whatever the decoder made;
// reduce.go averages whole blocks of pixels when the result is much smaller; convolve.go scales and blurs with the weights of
// kernels.go; orient.go turns it the right way up; adjust.go changes its colors; encode.go writes it.
//
// No picture may end the process: decoders run in the caller's goroutine behind a recover, and the goroutines that scale work
// on our own rows with our own code. Metadata is dropped, except when a filter keeps the original file as it is.
//
// What does not live here: caching, single flight and how many filters run at once (media), and who may ask for which filter.
// Lossy WebP needs cgo (webp_cgo.go); without it WebP is lossless and Result.Warning says so.
//
// Start reading at Filter.Apply.
package imagefilter
