package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/client"
)

func newServe(st *command.State) *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Be an MCP server on standard input and output, for programs that start one",
		Long: `Be an MCP server on standard input and output, for programs that start one: each line that comes is a message, which goes to the
service's endpoint, and each line that goes out is its answer. What is to be told to people goes to stderr. It ends when its input does.`,
		Example: `  claude mcp add svc -e SVCCTL_TOKEN=svc_pat_… -- svcctl mcp serve -s https://content.example.com`,
		Args:    command.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := st.PatientClient()
			if err != nil {
				return err
			}
			return Bridge(cmd.Context(), st.In, st.Stdout(), st.Err, c.SendMCP)
		},
	}
}

const (
	maxInFlight = 8        // messages that are with the service at once
	maxLine     = 64 << 20 // bytes of a message: twice of what the service takes, unless it is told otherwise
)

// Bridge sends each line of in, and writes the answers to out, a line each, as they come. What can't be sent is answered with an error of
// JSON-RPC that has the message's id. It returns at the end of in, when all answers are out, or when ctx ends.
func Bridge(ctx context.Context, in io.Reader, out, log io.Writer, send func(context.Context, []byte) (json.RawMessage, error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b := &bridge{out: out, log: log, send: send, cancel: cancel}
	lines := make(chan []byte)
	read := make(chan error, 1)
	go func() { read <- readLines(ctx, in, lines) }()
	places := make(chan struct{}, maxInFlight)
	defer b.answering.Wait()
	for {
		select {
		case <-ctx.Done():
			return b.failed()
		case err := <-read:
			b.answering.Wait()
			return errors.Join(err, b.failed())
		case line := <-lines:
			select {
			case places <- struct{}{}:
			case <-ctx.Done():
				return b.failed()
			}
			b.answering.Go(func() {
				defer func() { <-places }()
				b.answer(ctx, line)
			})
		}
	}
}

// readLines gives the lines of a reader that are not empty. Of one that is too long there is only the beginning, one byte more than maxLine.
func readLines(ctx context.Context, in io.Reader, lines chan<- []byte) error {
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		var line []byte
		for {
			part, err := r.ReadSlice('\n')
			line = append(line, part[:min(len(part), maxLine+1-len(line))]...)
			if errors.Is(err, bufio.ErrBufferFull) {
				continue
			}
			if err != nil && !errors.Is(err, io.EOF) {
				return err
			}
			if err != nil && len(line) == 0 {
				return nil
			}
			break
		}
		if len(line) <= maxLine {
			line = bytes.TrimSpace(line)
		}
		if len(line) == 0 {
			continue
		}
		select {
		case lines <- line:
		case <-ctx.Done():
			return nil
		}
	}
}

// tooLong is the answer to a message of which only the beginning was read: its id may be behind that.
var tooLong = json.RawMessage(fmt.Sprintf(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request: a message is longer than %d MiB"}}`, maxLine>>20))

type bridge struct {
	out, log  io.Writer
	send      func(context.Context, []byte) (json.RawMessage, error)
	cancel    func()
	answering sync.WaitGroup

	mu  sync.Mutex
	err error // of writing to out, after which there is nobody to answer
}

func (b *bridge) answer(ctx context.Context, line []byte) {
	if len(line) > maxLine {
		b.tell("svcctl mcp serve: a message is longer than %d MiB", maxLine>>20)
		b.write(tooLong)
		return
	}
	answer, err := b.send(ctx, line)
	if err != nil {
		if ctx.Err() != nil {
			return
		}
		if answer = refusal(line, err); answer == nil {
			b.tell("svcctl mcp serve: a message without an id was not taken: %v", err)
			return
		}
		b.tell("svcctl mcp serve: %v", err)
	}
	if answer == nil { // as to a message that wants no answer: who waits for one is told
		if answer = refusal(line, errNoAnswer); answer != nil {
			b.tell("svcctl mcp serve: %v", errNoAnswer)
		}
	}
	if answer != nil {
		b.write(answer)
	}
}

var errNoAnswer = errors.New("the service has not answered the message")

// write writes an answer.
func (b *bridge) write(answer json.RawMessage) {
	var flat bytes.Buffer // one line, whatever the service's is
	if err := json.Compact(&flat, answer); err != nil {
		b.tell("svcctl mcp serve: %v", err)
		return
	}
	flat.WriteByte('\n')
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, err := b.out.Write(bytes.ToValidUTF8(flat.Bytes(), []byte("\ufffd"))); err != nil && b.err == nil {
		b.err = err
		b.cancel()
	}
}

// tell tells people, whose terminal is not to obey what a service answers.
func (b *bridge) tell(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fmt.Fprintln(b.log, output.Escape(fmt.Sprintf(format, args...)))
}

func (b *bridge) failed() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// refusal is the answer to a message that the endpoint has not answered itself; nil: it wants none.
func refusal(line []byte, err error) json.RawMessage {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method json.RawMessage `json:"method"` // without one, it is an answer itself
	}
	if json.Unmarshal(line, &m) != nil || len(m.ID) == 0 || string(m.ID) == "null" || m.Method == nil {
		return nil
	}
	code, text := -32000, err.Error()
	if refused, ok := errors.AsType[*client.Error](err); ok {
		code, text = refused.Status, refused.Problem.Detail
	}
	out, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": map[string]any{"code": code, "message": text}})
	if err != nil {
		return nil
	}
	return out
}
