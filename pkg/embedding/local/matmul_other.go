//go:build !amd64

package local

// dotTile sets sums to the products of the rows of a and b that begin at at and bt.
func dotTile(a []float32, at *[tileA]int, b []float32, bt *[tileB]int, n int, sums *[tileA * tileB]float32) {
	dotTileGo(a, at, b, bt, n, sums)
}
