package app_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestOpenAPIClient has public generators make a client of the sample's OpenAPI document, which the compiler of TypeScript checks, and which then creates, lists,
// updates and deletes. They are in the directory that MCP_CLIENTS names, which make agents fills.
func TestOpenAPIClient(t *testing.T) {
	clients := os.Getenv("MCP_CLIENTS")
	if clients == "" {
		t.Skip("MCP_CLIENTS names no directory that has the generators of clients: make agents fills one")
	}
	modules, err := filepath.Abs(filepath.Join(clients, "node_modules"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range []string{"openapi-typescript", "tsc"} {
		if _, err := os.Stat(filepath.Join(modules, ".bin", tool)); err != nil {
			t.Skipf("there is no %s in MCP_CLIENTS: make agents installs it", tool)
		}
	}
	s := run(t, nil)
	if err := os.CopyFS(filepath.Join(s.dir, "blog"), os.DirFS("../../projects/blog")); err != nil {
		t.Fatal(err)
	}
	s.do("POST", "/api/v1/project", admin, text(`{"name": "blog", "configFile": "blog"}`)).want(t, http.StatusCreated)
	document := s.do("GET", "/api/v1/_openapi/blog", admin)
	document.want(t, http.StatusOK)

	dir := t.TempDir()
	program, err := os.ReadFile("testdata/openapiclient/use.ts")
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"blog.json": document.body, "use.ts": string(program), "package.json": `{"type": "module"}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	inDir := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	inDir(filepath.Join(modules, ".bin", "openapi-typescript"), "blog.json", "--default-non-nullable", "false", "-o", "blog.ts")
	inDir(filepath.Join(modules, ".bin", "tsc"), "--strict", "--target", "es2022", "--module", "nodenext", "--lib", "es2022,dom,dom.iterable", "use.ts")
	if out := inDir("node", "use.js", s.url+"/api/v1", adminToken); !strings.Contains(out, "created, listed, updated and deleted") {
		t.Error(out)
	}
}
