package main

import "testing"

func TestGCPercent(t *testing.T) {
	const mib = 1 << 20
	for _, tt := range []struct {
		what       string
		live, scan uint64
		want       int
	}{
		{"at the start nothing is known", 0, 0, gcMost},
		{"a small heap goes at Go's own pace", 40 * mib, 10 * mib, gcMost},
		{"a heap of pointers, too", 2000 * mib, 1990 * mib, gcMost},
		{"caches leave room for what there is beside them", 640 * mib, 64 * mib, 20},
		{"and for some garbage even if they are all there is", 640 * mib, 0, 10},
		{"more to scan than lives, as between two collections", 640 * mib, 900 * mib, gcMost},
	} {
		t.Run(tt.what, func(t *testing.T) {
			if got := gcPercent(tt.live, tt.scan); got != tt.want {
				t.Errorf("gcPercent(%d, %d) = %d, want %d", tt.live, tt.scan, got, tt.want)
			}
		})
	}
}
