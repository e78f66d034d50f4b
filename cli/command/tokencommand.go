package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/svcctl/svc/cli/settings"
)

// What a tokenCommand may take and give.
const (
	tokenCommandFor = time.Minute // somebody may have to touch a key
	maxToken        = 64 << 10    // bytes
)

// runTokenCommand has the program of a user of the contexts file give the token: on stdout, alone in a line, or as JSON with a member token,
// as programs for kubectl give it (status.token), too. It is started without a shell. What it writes to stderr is shown, and it may ask at
// the terminal. Its environment is that of svcctl without the credentials in it, and with SVCCTL_SERVER.
func (st *State) runTokenCommand(u *settings.User, server string) (string, error) {
	ctx := st.ctx
	if ctx == nil {
		ctx = context.Background()
	}
	limit := tokenCommandFor
	if st.completing {
		limit = completionTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	program := u.TokenCommand[0]
	if strings.ContainsAny(program, `/\\`) {
		program = st.beside(program)
	}
	cmd := exec.CommandContext(ctx, program, u.TokenCommand[1:]...) //nolint:gosec // the user's own choice
	out := &bounded{most: maxToken}
	cmd.Stdout, cmd.Env = out, childEnvironment(server)
	cmd.WaitDelay = time.Second // for what it has started, and left behind
	if !st.completing {
		if cmd.Stderr = st.Err; st.InTTY {
			cmd.Stdin = st.In
		}
	}
	fail := func(what string) error {
		return &Error{
			Exit: ExitDenied, Code: "token_command", Message: fmt.Sprintf("the tokenCommand of user %s (%s): %s", u.Name, u.TokenCommand[0], what), // its arguments may be secret
			Hint: "it has to print a token and end with exit code 0; svcctl config set-context names another one",
		}
	}
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return "", fail(err.Error())
	}
	token, ok := tokenIn(out.Bytes())
	if !ok {
		return "", fail("it printed no token")
	}
	return token, nil
}

// tokenIn finds the token in what a program has printed. What it printed else is told nowhere.
func tokenIn(data []byte) (string, bool) {
	text := strings.TrimSpace(string(data))
	if strings.HasPrefix(text, "{") {
		var answer struct {
			Token  string `json:"token"`
			Status struct {
				Token string `json:"token"`
			} `json:"status"`
		}
		if json.Unmarshal([]byte(text), &answer) != nil {
			return "", false
		}
		if text = answer.Token; text == "" {
			text = answer.Status.Token
		}
	}
	return text, isToken(text)
}

// isToken says whether text can be a token, as a header of a request has it.
func isToken(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

// childEnvironment is that of this process without the credentials in it.
func childEnvironment(server string) []string {
	secret := func(line string) bool {
		name, _, _ := strings.Cut(line, "=")
		return slices.Contains([]string{envName("token"), envName("admin-token"), envName("collection-token"), envName("server")}, name)
	}
	return append(slices.DeleteFunc(os.Environ(), secret), envName("server")+"="+server)
}

// bounded keeps what is written to it, up to a number of bytes.
type bounded struct {
	bytes.Buffer

	most int
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.most {
		return 0, io.ErrShortWrite
	}
	return b.Buffer.Write(p)
}
