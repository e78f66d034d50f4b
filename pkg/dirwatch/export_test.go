package dirwatch

import (
	"errors"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
)

// WithoutEvents makes a Watcher that has to poll, as where the kernel has no watch left to give.
func WithoutEvents(opts Options) *Watcher {
	w := New(opts)
	w.open = func() (*fsnotify.Watcher, error) { return nil, errors.New("no space left on device") }
	return w
}

// WithoutDirectories makes a Watcher whose directories the kernel refuses to watch. It looks again after 20 ms.
func WithoutDirectories(opts Options) *Watcher {
	w := New(opts)
	w.add = func(*fsnotify.Watcher, string) error { return syscall.ENOSPC }
	w.degraded = 20 * time.Millisecond
	return w
}

// WithSilence makes a Watcher whose directories tell of nothing, like those of a network mount that others write to.
func WithSilence(opts Options) *Watcher {
	w := New(opts)
	w.add = func(*fsnotify.Watcher, string) error { return nil }
	return w
}

// Sum is the fingerprint of a tree, read without any knowledge of an earlier look.
func Sum(dir string, skip ...string) [32]byte { return scan(dir, skip, nil).sum }
