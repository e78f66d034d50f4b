package media

import (
	"context"
	"hash/fnv"
	"os"
	"sync"
	"time"

	"github.com/svcctl/svc/pkg/errs"
)

// claimsFile is locked, a byte for each record, so that several processes can work on one folder: shared while an upload
// waits for its record to be written, exclusive while files of a record are removed. What a process holds ends with it.
const claimsFile = ".claims"

const (
	claimRetry = 5 * time.Millisecond
	claimWait  = 30 * time.Second // others remove files of one record for as long as it takes to read that
)

// claims are the locks of one process. It is safe for concurrent use.
type claims struct {
	file *os.File // nil: the file system has no locks

	mu   sync.Mutex
	held map[int64]*claim // by the byte of a record
}

type claim struct {
	uploads   int  // that wait for the record
	exclusive bool // files are being removed
}

func openClaims(root *os.Root) (*claims, error) {
	file, err := root.OpenFile(claimsFile, os.O_CREATE|os.O_RDWR, fileMode)
	if err != nil {
		return nil, err
	}
	c := &claims{file: file, held: map[int64]*claim{}}
	if _, err := c.lock(0, unlocked); err != nil {
		c.file = nil
		return c, file.Close()
	}
	return c, nil
}

func (c *claims) close() error {
	if c.file == nil {
		return nil
	}
	return c.file.Close()
}

// byteOf is the same in all processes. That two records may share one makes one of them wait for the other at worst.
func byteOf(folder string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(folder)) // a hash takes everything
	const most = 1<<62 - 1
	return int64(h.Sum64() & most)
}

// share keeps other processes from removing files of a record, until release. Calls for one record nest.
func (c *claims) share(ctx context.Context, folder string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, claimWait, errClaimed)
	defer cancel()
	for {
		done, err := c.tryShare(byteOf(folder))
		if done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(claimRetry):
		}
	}
}

var errClaimed = errs.New(errs.Unavailable, "files_busy", "files of this record are being removed: try again in a moment")

func (c *claims) tryShare(at int64) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cl := c.held[at]
	if cl == nil {
		if done, err := c.lock(at, shared); !done {
			return false, err
		}
		cl = &claim{}
		c.held[at] = cl
	}
	cl.uploads++
	return true, nil
}

// release ends a share.
func (c *claims) release(folder string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := byteOf(folder)
	cl := c.held[at]
	cl.uploads--
	c.settle(at, cl)
}

// exclude keeps uploads of other processes from beginning to wait for a record, if none of them does. Those of this process
// are for its own locks to see to. Where others are at the record, ok is false: what is to be removed there is swept later.
func (c *claims) exclude(folder string) (end func(), ok bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := byteOf(folder)
	cl := c.held[at]
	if cl != nil && cl.exclusive { // for another record of the same byte
		return nil, false, nil
	}
	if ok, err := c.lock(at, exclusive); !ok {
		return nil, false, err
	}
	if cl == nil {
		cl = &claim{}
		c.held[at] = cl
	}
	cl.exclusive = true
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		cl.exclusive = false
		c.settle(at, cl)
	}, true, nil
}

// settle brings the lock down to what is still claimed. mu is held.
func (c *claims) settle(at int64, cl *claim) {
	switch {
	case cl.exclusive:
	case cl.uploads > 0:
		_, _ = c.lock(at, shared) // less than it has: that can't fail
	default:
		delete(c.held, at)
		_, _ = c.lock(at, unlocked)
	}
}

// lock says whether the byte could be locked. Never does it wait. mu is held.
func (c *claims) lock(at int64, kind int16) (bool, error) {
	if c.file == nil {
		return true, nil
	}
	return lockByte(c.file, at, kind)
}
