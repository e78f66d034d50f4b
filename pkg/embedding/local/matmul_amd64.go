package local

import "golang.org/x/sys/cpu"

// fast says whether this processor has what dotTileAVX2 needs.
var fast = cpu.X86.HasAVX2 && cpu.X86.HasFMA //nolint:gochecknoglobals // never written, and asked for in the innermost loop

// dotTile sets sums to the products of the rows of a and b that begin at at and bt; n is a multiple of lanes.
func dotTile(a []float32, at *[tileA]int, b []float32, bt *[tileB]int, n int, sums *[tileA * tileB]float32) {
	if !fast {
		dotTileGo(a, at, b, bt, n, sums)
		return
	}
	a0, a1, a2, a3 := a[at[0]:][:n], a[at[1]:][:n], a[at[2]:][:n], a[at[3]:][:n]
	b0, b1, b2 := b[bt[0]:][:n], b[bt[1]:][:n], b[bt[2]:][:n]
	dotTileAVX2(&a0[0], &a1[0], &a2[0], &a3[0], &b0[0], &b1[0], &b2[0], n, sums)
}

// dotTileAVX2 sets sums to the products of four rows and three, of n values each; n is a multiple of 8 and not 0.
//
//go:noescape
func dotTileAVX2(a0, a1, a2, a3, b0, b1, b2 *float32, n int, sums *[tileA * tileB]float32)
