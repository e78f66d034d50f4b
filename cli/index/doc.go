// Package index holds svcctl index: how far the declared indexes of a collection are.
package index
