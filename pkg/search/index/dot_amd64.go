package index

import "golang.org/x/sys/cpu"

// fast says whether this processor has what dot_amd64.s needs.
var fast = cpu.X86.HasAVX2 && cpu.X86.HasFMA //nolint:gochecknoglobals // never written, and asked for in the innermost loop

// lanes is what the length of a part that the processor multiplies at once is a multiple of.
const lanes = 32

// dot multiplies vectors of the same length.
func dot(a, b []float32) float32 {
	n := len(a) &^ (lanes - 1)
	if !fast || n == 0 {
		return dotGo(a, b)
	}
	b = b[:len(a)]
	sum := dotAVX2(&a[0], &b[0], n)
	if n < len(a) {
		sum += dotGo(a[n:], b[n:])
	}
	return sum
}

// dotSmall multiplies vectors of the same length, of which no number is above 127 or below -127.
func dotSmall(a []int16, b []int8) int32 {
	n := len(a) &^ (lanes - 1)
	if !fast || n == 0 {
		return dotSmallGo(a, b)
	}
	b = b[:len(a)]
	sum := dotSmallAVX2(&a[0], &b[0], n)
	if n < len(a) {
		sum += dotSmallGo(a[n:], b[n:])
	}
	return sum
}

// dotAVX2 multiplies n numbers; n is a multiple of lanes and not 0.
//
//go:noescape
func dotAVX2(a, b *float32, n int) float32

// dotSmallAVX2 multiplies n numbers; n is a multiple of lanes and not 0.
//
//go:noescape
func dotSmallAVX2(a *int16, b *int8, n int) int32
