package project

import (
	"crypto/sha256"
	"sync"
	"time"

	"github.com/svcctl/svc/pkg/script"
)

// Scripts keeps compiled scripts from reload to reload, so that one compiles again only when one of its files has changed.
// It is safe for concurrent use.
type Scripts struct {
	compiler Compile

	mu       sync.Mutex
	compiled map[scriptKey]compiledScript
}

// Compile compiles a script of a project, named by its directory, and tells how long that took without waiting for others.
type Compile func(project, entry string, read func(name string) ([]byte, error)) (*script.Program, script.Problems, time.Duration)

// NewScripts makes an empty cache. compile is how: that of a script.Engine with worker processes, which no text can end;
// nil: in this process.
func NewScripts(compile Compile) *Scripts {
	if compile == nil {
		compile = compileHere
	}
	return &Scripts{compiler: compile, compiled: map[scriptKey]compiledScript{}}
}

func compileHere(_, entry string, read func(name string) ([]byte, error)) (*script.Program, script.Problems, time.Duration) {
	began := time.Now()
	p, problems := script.Compile(entry, read)
	return p, problems, time.Since(began)
}

// scriptKey is a script's file and what is in it.
type scriptKey struct {
	name string
	hash [sha256.Size]byte
}

// compiledScript is a program, and all that was looked for to make it: a file that was not there counts, too, for it
// would be taken now.
type compiledScript struct {
	program *script.Program
	looked  map[string][sha256.Size]byte // zero: not there
}

// maxScripts bounds the cache. Beyond it, it starts anew.
const maxScripts = 4096

// compile gives the program of a file that can be read, by read, and tells how long that took.
func (s *Scripts) compile(project, name string, read func(name string) ([]byte, error)) (*script.Program, script.Problems, time.Duration) {
	key := scriptKey{name, hashOf(name, read)}
	s.mu.Lock()
	known, ok := s.compiled[key]
	s.mu.Unlock()
	if ok && known.holds(read) {
		return known.program, nil, 0
	}
	looked := map[string][sha256.Size]byte{}
	program, problems, took := s.compiler(project, name, func(name string) ([]byte, error) { // one call at a time
		data, err := read(name)
		looked[name] = [sha256.Size]byte{}
		if err == nil {
			looked[name] = sha256.Sum256(data)
		}
		return data, err
	})
	if program == nil {
		return nil, problems, took
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.compiled) >= maxScripts {
		clear(s.compiled)
	}
	s.compiled[key] = compiledScript{program, looked}
	return program, problems, took
}

// holds says that everything is as it was when the program was made.
func (c compiledScript) holds(read func(name string) ([]byte, error)) bool {
	for name, hash := range c.looked {
		if hashOf(name, read) != hash {
			return false
		}
	}
	return true
}

// hashOf is zero for a file that can't be read.
func hashOf(name string, read func(name string) ([]byte, error)) (hash [sha256.Size]byte) {
	if data, err := read(name); err == nil {
		hash = sha256.Sum256(data)
	}
	return hash
}
