package command

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/output"
)

// maxInput is how much is read from a file or stdin into memory, in bytes.
const maxInput = 64 << 20

// Input is one JSON value given with -f or --data.
type Input struct {
	File string
	Data string
}

// Register adds the flags.
func (in *Input) Register(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&in.File, "file", "f", "", "file with the JSON or YAML, - for stdin")
	cmd.Flags().StringVarP(&in.Data, "data", "d", "", "the JSON itself, or @file")
	cmd.MarkFlagsMutuallyExclusive("file", "data")
}

// Given says whether one of the flags is there.
func (in *Input) Given() bool { return in.File != "" || in.Data != "" }

// Read gives the input as JSON. YAML is told by the file's ending.
func (in *Input) Read(st *State) (json.RawMessage, error) {
	file, data := in.File, []byte(in.Data)
	if name, ok := strings.CutPrefix(in.Data, "@"); ok {
		file = name
	}
	if file != "" {
		var err error
		if data, err = st.ReadFile(file); err != nil {
			return nil, err
		}
	}
	switch strings.ToLower(filepath.Ext(file)) {
	case ".yaml", ".yml":
		converted, err := YAMLToJSON(data)
		if err != nil {
			return nil, Usagef("%s: %v", file, err)
		}
		return converted, nil
	}
	where := file
	switch where {
	case "":
		where = "--data"
	case "-":
		where = "stdin"
	}
	if err := checkJSON(data); err != nil {
		return nil, Usagef("%s: %v", where, err)
	}
	return data, nil
}

// ReadFile reads a file, or stdin for "-".
func (st *State) ReadFile(name string) ([]byte, error) {
	r := st.Stdin()
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, Usagef("%v", err)
		}
		defer f.Close() //nolint:errcheck // only read
		r = f
	}
	data, err := io.ReadAll(io.LimitReader(r, maxInput+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(data) > maxInput {
		return nil, Usagef("%s is larger than %d MiB; svcctl doc import streams records of any number", name, maxInput>>20)
	}
	return data, nil
}

// checkJSON refuses what is not one JSON value, naming line and column.
func checkJSON(data []byte) error {
	var v any
	err := json.Unmarshal(data, &v)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		upTo := data[:min(int(syntax.Offset), len(data))]
		line := 1 + bytes.Count(upTo, []byte("\n"))
		column := len(upTo) - bytes.LastIndexByte(upTo, '\n') - 1
		return fmt.Errorf("line %d, column %d: %w", line, column, err)
	}
	return err
}

// YAMLToJSON reads YAML and keeps the order of members.
func YAMLToJSON(data []byte) ([]byte, error) {
	var v any
	if err := yaml.UnmarshalWithOptions(data, &v, yaml.UseOrderedMap()); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := appendJSON(&b, v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func appendJSON(b *bytes.Buffer, v any) error {
	switch v := v.(type) {
	case yaml.MapSlice:
		b.WriteByte('{')
		for i, m := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := appendJSON(b, fmt.Sprint(m.Key)); err != nil {
				return err
			}
			b.WriteByte(':')
			if err := appendJSON(b, m.Value); err != nil {
				return err
			}
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := appendJSON(b, e); err != nil {
				return err
			}
		}
		b.WriteByte(']')
	default:
		raw, err := json.Marshal(v)
		if err != nil {
			return err
		}
		b.Write(raw)
	}
	return nil
}

// Password is a new or present password and the ways to give it. It is never a plain argument, since other users of
// the machine see those.
type Password struct {
	File     string
	Stdin    bool
	Generate bool
}

// Register adds the flags; with generate, also --generate.
func (p *Password) Register(cmd *cobra.Command, generate bool) {
	cmd.Flags().StringVar(&p.File, "password-file", "", "file whose first line is the password")
	cmd.Flags().BoolVar(&p.Stdin, "password-stdin", false, "read the password from stdin")
	names := []string{"password-file", "password-stdin"}
	if generate {
		cmd.Flags().BoolVar(&p.Generate, "generate", false, "make a password up, and print it")
		names = append(names, "generate")
	}
	cmd.MarkFlagsMutuallyExclusive(names...)
}

// Read gets the password, by asking when there is a terminal and no flag. A new one is asked for twice.
func (p *Password) Read(st *State, prompt string, isNew bool) (string, error) {
	switch {
	case p.Generate:
		return GeneratePassword()
	case p.File != "":
		data, err := st.ReadFile(p.File)
		return firstLine(data, p.File, err)
	case p.Stdin:
		data, err := st.ReadFile("-")
		return firstLine(data, "stdin", err)
	}
	return st.AskSecret(prompt, isNew)
}

// AskSecret asks for a secret at the terminal.
func (st *State) AskSecret(prompt string, twice bool) (string, error) {
	if !st.InTTY || !st.ErrTTY || st.ReadSecret == nil {
		return "", &Error{
			Exit: ExitUsage, Code: "usage", Message: "no password was given and there is no terminal to ask at",
			Hint: "give --password-file or --password-stdin",
		}
	}
	ask := func(prompt string) (string, error) {
		secret, err := st.ReadSecret(func() { fmt.Fprint(st.Err, output.Escape(prompt)+": ") })
		fmt.Fprintln(st.Err)
		if err != nil {
			return "", fmt.Errorf("read the password: %w", err)
		}
		return secret, nil
	}
	secret, err := ask(prompt)
	if err != nil {
		return "", err
	}
	if secret == "" {
		return "", Usagef("the password is empty")
	}
	if twice {
		again, err := ask("Again")
		if err != nil {
			return "", err
		}
		if again != secret {
			return "", Usagef("the two passwords differ")
		}
	}
	return secret, nil
}

func firstLine(data []byte, where string, err error) (string, error) {
	if err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(string(data), "\n")
	if line = strings.TrimSuffix(line, "\r"); line == "" {
		return "", Usagef("%s: the password is empty", where)
	}
	return line, nil
}

// passwordAlphabet leaves out what people take for one another.
const passwordAlphabet = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"

// GeneratePassword makes a password up: 20 characters, about 116 bits.
func GeneratePassword() (string, error) {
	out := make([]byte, 20)
	for i := range out {
		n, err := rand.Int(rand.Reader, big.NewInt(int64(len(passwordAlphabet))))
		if err != nil {
			return "", err
		}
		out[i] = passwordAlphabet[n.Int64()]
	}
	return string(out), nil
}
