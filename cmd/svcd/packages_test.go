package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

const checkout = "../.."

// The settings that packages install are settings, and the unit starts svcd with them.
func TestPackagedSettings(t *testing.T) {
	cfg, err := read(t, "", nil, "--config="+filepath.Join(checkout, "deploy/packages/svcd.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Port != 8080 || cfg.DataDir != "/var/lib/svc/data" || cfg.ProjectsDir != "/var/lib/svc/projects" {
		t.Errorf("%d %s %s", cfg.Port, cfg.DataDir, cfg.ProjectsDir)
	}
}

// Every file of a package is there, once, and systemd reads the unit.
func TestPackages(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(checkout, ".goreleaser.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var release struct {
		Packages []struct {
			BinDir   string `yaml:"bindir"`
			Contents []struct {
				Src string `yaml:"src"`
				Dst string `yaml:"dst"`
			} `yaml:"contents"`
			Scripts map[string]string `yaml:"scripts"`
		} `yaml:"nfpms"`
	}
	if err := yaml.Unmarshal(text, &release); err != nil {
		t.Fatal(err)
	}
	if len(release.Packages) != 1 {
		t.Fatalf("%d kinds of packages", len(release.Packages))
	}
	p := release.Packages[0]
	var installed []string
	for _, c := range p.Contents {
		installed = append(installed, c.Dst)
		if strings.HasPrefix(c.Src, "bin/share/") { // scripts/share.sh makes it
			continue
		}
		if found, err := filepath.Glob(filepath.Join(checkout, c.Src)); err != nil || len(found) == 0 {
			t.Errorf("%s: %v %v", c.Src, found, err)
		}
	}
	if slices.Sort(installed); len(slices.Compact(slices.Clone(installed))) != len(installed) {
		t.Errorf("something is installed twice: %v", installed)
	}
	for name, script := range p.Scripts {
		if out, err := exec.CommandContext(t.Context(), "sh", "-n", filepath.Join(checkout, script)).CombinedOutput(); err != nil {
			t.Errorf("%s: %s", name, out)
		}
	}
	unit, err := os.ReadFile(filepath.Join(checkout, "deploy/packages/svcd.service"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ExecStart=" + p.BinDir + "/svcd serve --config /etc/svc/svcd.yaml\n", "\nType=notify\n"} {
		if !strings.Contains(string(unit), want) {
			t.Errorf("the unit has no %s", want)
		}
	}
	if !slices.Contains(installed, "/etc/svc/svcd.yaml") {
		t.Errorf("its settings are not installed: %v", installed)
	}

	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("no systemd-analyze is installed, which would read the unit")
	}
	// With a program that is here in place of the one that is installed.
	path := filepath.Join(t.TempDir(), "svcd.service")
	if err := os.WriteFile(path, []byte(strings.Replace(string(unit), "ExecStart="+p.BinDir+"/svcd", "ExecStart=/bin/true", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", path).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze: %v\n%s", err, out)
	}
}
