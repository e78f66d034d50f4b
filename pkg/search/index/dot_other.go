//go:build !amd64

package index

func dot(a, b []float32) float32 { return dotGo(a, b) }

func dotSmall(a []int16, b []int8) int32 { return dotSmallGo(a, b) }
