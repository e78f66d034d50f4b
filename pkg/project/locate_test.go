package project_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
)

// layout makes files (a name that ends in / is a directory), and symbolic links from name to target.
func layout(t *testing.T, files []string, links map[string]string) (dir string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		path := filepath.Join(dir, name)
		parent := filepath.Dir(path)
		if name[len(name)-1] == '/' {
			parent = path
		}
		if err := os.MkdirAll(parent, 0o700); err != nil {
			t.Fatal(err)
		}
		if parent != path {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestS46Locate(t *testing.T) {
	dir := layout(t, []string{
		"projects/project.yaml", "projects/blog/project.yaml", "projects/blog/project.json", "projects/blog/other.yaml",
		"projects/shop/project.json", "projects/empty/", "projects/..dots/project.yaml", "projects-old/a/project.yaml",
		"outside/project.yaml", "outside/secret", "work/mine/project.yaml", "releases/2/project.yaml",
	}, map[string]string{
		"projects/current":      "blog",
		"projects/out":          "../outside",
		"projects/out.yaml":     "../outside/secret",
		"projects/broken":       "nowhere",
		"projects/loop":         "loop",
		"projects/blog/up.yaml": "../shop/project.json",
		"linked":                "projects",
	})
	t.Chdir(dir)
	for _, tc := range []struct {
		file       string
		dir, entry string // inside the test's directory
		code       string // instead
	}{
		{"blog/project.yaml", "projects/blog", "project.yaml", ""},
		{"blog", "projects/blog", "project.yaml", ""},
		{"blog/", "projects/blog", "project.yaml", ""},
		{"./blog/../blog/other.yaml", "projects/blog", "other.yaml", ""},
		{"shop", "projects/shop", "project.json", ""},
		{".", "projects", "project.yaml", ""},
		{"..dots", "projects/..dots", "project.yaml", ""},
		{dir + "/projects/blog/project.yaml", "projects/blog", "project.yaml", ""},
		{dir + "/linked/blog", "linked/blog", "project.yaml", ""},
		{"projects/blog", "projects/blog", "project.yaml", ""}, // relative to the working directory
		{"./linked/blog", "linked/blog", "project.yaml", ""},
		{"current/other.yaml", "projects/current", "other.yaml", ""}, // a deployment swaps the link
		{"blog/up.yaml", "projects/blog", "up.yaml", ""},             // Load then refuses what leaves its directory

		{"", "projects", "project.yaml", ""},
		{"empty", "", "", "config_not_found"},
		{"none", "", "", "config_not_found"},
		{"blog/none.yaml", "", "", "config_not_found"},
		{"blog/project.yaml/x", "", "", "config_not_found"},
		{"broken", "", "", "config_not_found"},
		{"loop", "", "", "config_not_found"},
		{"a\x00b", "", "", "config_not_found"},
		{"mine/project.yaml", "", "", "config_not_found"},
		{dir + "/projects/none", "", "", "config_not_found"},

		{"out", "", "", "config_outside"},
		{"out/project.yaml", "", "", "config_outside"},
		{"out.yaml", "", "", "config_outside"},
		{"../outside/project.yaml", "", "", "config_outside"},
		{"../projects-old/a", "", "", "config_outside"},
		{"blog/../../outside", "", "", "config_outside"},
		{"../../../../../../../../../../etc/passwd", "", "", "config_outside"},
		{dir + "/outside/project.yaml", "", "", "config_outside"},
		{"/etc/passwd", "", "", "config_outside"},
		{"/", "", "", "config_outside"},
		// What does not exist outside is answered like what does.
		{"../outside/none.yaml", "", "", "config_outside"},
		{"/etc/none-of-this-name", "", "", "config_outside"},
	} {
		t.Run(tc.file, func(t *testing.T) {
			for _, projects := range []string{filepath.Join(dir, "projects"), "projects", "./projects/", filepath.Join(dir, "linked")} {
				gotDir, entry, err := project.Locate(projects, tc.file)
				if tc.code != "" {
					if err == nil || errs.From(err).Code != tc.code {
						t.Errorf("in %s: %s/%s, %v; want %s", projects, gotDir, entry, err, tc.code)
					}
					continue
				}
				if want := filepath.Join(dir, tc.dir); err != nil || gotDir != want || entry != tc.entry {
					t.Errorf("in %s: %s, %s, %v; want %s, %s", projects, gotDir, entry, err, want, tc.entry)
				}
			}
		})
	}
}

// The working directory may be reached by a symbolic link, which the shell leaves in PWD.
func TestLocateFromBehindALink(t *testing.T) {
	dir := layout(t, []string{"real/projects/blog/project.yaml"}, map[string]string{"link": "real"})
	t.Chdir(filepath.Join(dir, "link"))
	t.Setenv("PWD", filepath.Join(dir, "link"))
	for _, file := range []string{"blog", "projects/blog", dir + "/real/projects/blog", dir + "/link/projects/blog"} {
		if _, entry, err := project.Locate("projects", file); err != nil || entry != "project.yaml" {
			t.Errorf("%s: %s, %v", file, entry, err)
		}
	}
}

func TestLocateWithoutProjectsDirectory(t *testing.T) {
	_, _, err := project.Locate(filepath.Join(t.TempDir(), "none"), "blog")
	if e := errs.From(err); e == nil || e.Kind != errs.Unavailable || e.Code != "no_projects_dir" {
		t.Errorf("got %v", err)
	}
}

func TestLocateUnreadable(t *testing.T) {
	dir := layout(t, []string{"projects/closed/project.yaml"}, nil)
	closed := filepath.Join(dir, "projects", "closed")
	if err := os.Chmod(closed, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(closed, 0o700) })
	if _, err := os.ReadDir(closed); err == nil {
		t.Skip("this user may read everything")
	}
	if _, _, err := project.Locate(dir+"/projects", "closed/project.yaml"); errs.From(err).Code != "config_unreadable" {
		t.Errorf("got %v", err)
	}
}
