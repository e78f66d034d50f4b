package auth

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"sync/atomic"
	"time"
)

// processLimit is when a process that makes a hash is given up. It is well above what one takes on a busy machine.
const processLimit = 30 * time.Second

// hashJob is what a process is asked for, as JSON on its standard input. It answers with the key, as it is.
type hashJob struct {
	Params
	Password, Salt []byte // a password need not be UTF-8
	Size           uint32
}

// NewProcessHasher makes a Hasher that has each hash made by a process of its own, which command starts and which runs
// ServeHash. A hash in this process would hold one of the few threads that run Go code for as long as it takes, and
// requests would wait behind it; the process has a lower priority, and its memory is gone with it. Where it can't be
// started, or fails, the hash is made here.
func NewProcessHasher(params Params, parallel int, command []string, log *slog.Logger) *Hasher {
	h := NewHasher(params, parallel)
	h.derive = (&hashProcess{command: command, log: log}).derive
	return h
}

// hashProcess starts processes.
type hashProcess struct {
	command []string
	log     *slog.Logger
	failing atomic.Bool // the last one failed, which has been logged
}

func (h *hashProcess) derive(ctx context.Context, p Params, password string, salt []byte, size uint32) []byte {
	key, err := h.run(ctx, hashJob{p, []byte(password), salt, size})
	if err != nil {
		if !h.failing.Swap(true) {
			h.log.WarnContext(ctx, "no process can make password hashes: they are made in this one, and reads wait for them", slog.Any("error", err))
		}
		return derive(ctx, p, password, salt, size)
	}
	h.failing.Store(false)
	return key
}

func (h *hashProcess) run(ctx context.Context, job hashJob) ([]byte, error) {
	in, err := json.Marshal(job) //nolint:gosec // the password goes to our own process, through a pipe
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), processLimit) // as long as a hash here would go on
	defer cancel()
	cmd := exec.CommandContext(ctx, h.command[0], h.command[1:]...) //nolint:gosec // this program
	cmd.Env = []string{"GOGC=off"}                                  // one hash leaves nothing to collect; settings are none of its business
	cmd.Stdin = bytes.NewReader(in)
	key, err := cmd.Output()
	if err == nil && len(key) != int(job.Size) {
		err = fmt.Errorf("it gave %d bytes instead of %d", len(key), job.Size)
	}
	return key, err
}

// ServeHash makes one hash for a Hasher of another process, at a low priority.
func ServeHash(ctx context.Context, in io.Reader, out io.Writer) error {
	lowerPriority()
	var job hashJob
	if err := json.NewDecoder(in).Decode(&job); err != nil {
		return fmt.Errorf("this command is for svcd itself, which asks it for a hash: %w", err)
	}
	if err := job.check(len(job.Salt), int(job.Size)); err != nil {
		return err
	}
	_, err := out.Write(derive(ctx, job.Params, string(job.Password), job.Salt, job.Size))
	return err
}
