package settings_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/cli/settings"
)

func TestPath(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		env  map[string]string
		want string
	}{
		{nil, "/home/ann/.config/svcctl/config.yaml"},
		{map[string]string{"XDG_CONFIG_HOME": "/xdg"}, "/xdg/svcctl/config.yaml"},
		{map[string]string{"XDG_CONFIG_HOME": "relative"}, "/home/ann/.config/svcctl/config.yaml"},
		{map[string]string{"XDG_CONFIG_HOME": "/xdg", "SVCCTL_CONFIG": "my.yaml"}, "my.yaml"},
	} {
		env := func(name string) (string, bool) { v, ok := tc.env[name]; return v, ok }
		if got := settings.Path(env, "/home/ann"); got != tc.want {
			t.Errorf("%v: got %s", tc.env, got)
		}
	}
}

// Who has no home has no contexts: a file in the current directory may be somebody else's, and would name a program to run.
func TestNoHome(t *testing.T) {
	t.Parallel()
	for _, home := range []string{"", ".", "relative"} {
		path := settings.Path(func(string) (string, bool) { return "", false }, home)
		if path != "" {
			t.Errorf("%q: got %s", home, path)
		}
		if f, _, err := settings.Load(path); err != nil || len(f.Contexts) != 0 {
			t.Errorf("%q: got %v, %v", home, f, err)
		}
		if err := settings.Update(path, func(*settings.File) error { return nil }); err == nil || !strings.Contains(err.Error(), "HOME") {
			t.Errorf("%q: got %v", home, err)
		}
	}
}

func sample() *settings.File {
	f := &settings.File{CurrentContext: "prod"}
	f.SetContext(settings.Context{Name: "local", Server: "local", User: "admin", Namespace: "blog"},
		settings.Server{Name: "local", Server: "http://127.0.0.1:8080"},
		settings.User{Name: "admin", AdminTokenFile: "/data/admin.token"})
	f.SetContext(settings.Context{Name: "prod", Server: "prod", User: "ann"},
		settings.Server{Name: "prod", Server: "https://cms.example.com", CAFile: "/ca.pem"},
		settings.User{Name: "ann", Username: "ann", Token: "jwt-secret", ExpiresAt: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)})
	return f
}

func TestUpdateAndLoad(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "svcctl", "config.yaml")
	if f, warning, err := settings.Load(path); err != nil || warning != "" || len(f.Contexts) != 0 {
		t.Fatalf("a missing file: %v %q %v", f, warning, err)
	}
	if err := settings.Update(path, func(f *settings.File) error { *f = *sample(); return nil }); err != nil {
		t.Fatal(err)
	}
	got, warning, err := settings.Load(path)
	if err != nil || warning != "" {
		t.Fatal(warning, err)
	}
	if diff := cmp.Diff(sample(), got); diff != "" {
		t.Fatal(diff)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	refuse := errors.New("no")
	err = settings.Update(path, func(f *settings.File) error { f.CurrentContext = "x"; return refuse })
	if after, _ := os.ReadFile(path); !errors.Is(err, refuse) || !bytes.Equal(after, before) {
		t.Fatalf("a refused change: %v, %s", err, after)
	}
	if runtime.GOOS == "windows" {
		return
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatal(info.Mode(), err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, warning, _ := settings.Load(path); !strings.Contains(warning, "chmod 600") {
		t.Fatalf("got %q", warning)
	}
}

func TestUpdatesAtOnceAreAllKept(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "config.yaml")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			name := fmt.Sprint("c", i)
			err := settings.Update(path, func(f *settings.File) error {
				f.SetContext(settings.Context{Name: name, Server: name}, settings.Server{Name: name}, settings.User{})
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	f, _, err := settings.Load(path)
	if err != nil || len(f.Contexts) != 8 {
		t.Fatal(f, err)
	}
}

func TestLoadRefusesWithoutShowingSecrets(t *testing.T) {
	t.Parallel()
	for _, content := range []string{
		"users:\n  - name: ann\n    token: [jwt-secret]\n",
		"users:\n  - name: ann\n    tokn: jwt-secret\n",
		"users: 'jwt-secret\n",
	} {
		path := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := settings.Load(path)
		if err == nil || !strings.Contains(err.Error(), path+": line ") || strings.Contains(err.Error(), "jwt-secret") {
			t.Errorf("%q: got %v", content, err)
		}
	}
}

func TestDeleteContext(t *testing.T) {
	t.Parallel()
	f := sample()
	f.SetContext(settings.Context{Name: "local2", Server: "local", User: "ann"},
		settings.Server{Name: "local", Server: "http://127.0.0.1:8080"}, settings.User{})
	if f.DeleteContext("none") || !f.DeleteContext("prod") {
		t.Fatal("wrong answers")
	}
	if f.CurrentContext != "" || len(f.Servers) != 1 || len(f.Users) != 2 || len(f.Contexts) != 2 {
		t.Fatalf("got %+v", f)
	}
	if !f.DeleteContext("local") || !f.DeleteContext("local2") || len(f.Users)+len(f.Servers) != 0 {
		t.Fatalf("got %+v", f)
	}
}

func TestRedacted(t *testing.T) {
	t.Parallel()
	f := sample()
	r := f.Redacted()
	if u, _ := r.User("ann"); u.Token != "REDACTED" {
		t.Errorf("got %+v", u)
	}
	if u, _ := r.User("admin"); u.AdminToken != "" {
		t.Errorf("got %+v", u)
	}
	if u, _ := f.User("ann"); u.Token != "jwt-secret" {
		t.Error("the file itself was changed")
	}
}

// TestOthersCanChange has a file that others can change tell so, and run no program when everybody can.
func TestOthersCanChange(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("modes say little there")
	}
	plain, runs := sample(), sample()
	plain.Users, runs.Users = nil, []settings.User{{Name: "ann", TokenCommand: []string{"pass"}}}
	for _, tc := range []struct {
		file          *settings.File
		mode          os.FileMode
		warning, want string
	}{
		{plain, 0o644, "", ""},
		{plain, 0o664, "others can change it", ""},
		{plain, 0o666, "others can change it", ""},
		{runs, 0o644, "", ""},
		{runs, 0o664, "others can change it", ""},
		{runs, 0o666, "", "everybody can change it"},
		{sample(), 0o640, "others can read it", ""},
	} {
		path := filepath.Join(t.TempDir(), "config.yaml")
		if err := settings.Update(path, func(f *settings.File) error { *f = *tc.file; return nil }); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, tc.mode); err != nil {
			t.Fatal(err)
		}
		_, warning, err := settings.Load(path)
		if text := fmt.Sprint(err); !strings.Contains(warning, tc.warning) || (warning == "") != (tc.warning == "") || !strings.Contains(text, tc.want) || (err == nil) != (tc.want == "") {
			t.Errorf("%v with mode %o: got %q and %v", tc.file.Users, tc.mode, warning, err)
		}
	}
}

// TestRedactedServer has an address that was written with a password by hand not show it.
func TestRedactedServer(t *testing.T) {
	t.Parallel()
	for server, want := range map[string]string{
		"https://host:1/path": "https://host:1/path", "https://ann:secret@host/path": "https://host/path", "https://ann:sec%zz@host": "REDACTED", "https://host?token=secret": "https://host",
	} {
		f := &settings.File{Servers: []settings.Server{{Name: "a", Server: server}}}
		if got := f.Redacted().Servers[0].Server; got != want || f.Servers[0].Server != server {
			t.Errorf("%s: got %s", server, got)
		}
	}
}
