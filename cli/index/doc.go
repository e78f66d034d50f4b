// Package index holds svcctl index: how far the declared indexes are, and that they are made.
package index
