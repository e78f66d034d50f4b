package app

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"

	"github.com/svcctl/svc/pkg/system"
)

// AdminTokenFile is where a generated server admin token is kept.
func AdminTokenFile(dataDir string) string { return filepath.Join(dataDir, "admin.token") }

// adminToken gives the server admin token: the one in the settings, else the one that was generated at the first
// start and is kept in a file that only its owner can read.
func adminToken(ctx context.Context, cfg Config) (string, error) {
	if cfg.AdminToken != "" {
		return longEnough(cfg.AdminToken, "the admin token")
	}
	path := AdminTokenFile(cfg.DataDir)
	data, err := os.ReadFile(path) //nolint:gosec // whoever sets the service up names its directory
	switch {
	case err == nil && strings.TrimSpace(string(data)) == "":
		return "", fmt.Errorf("the admin token file %s is empty: delete it to have a new one made", path)
	case err == nil:
		return longEnough(strings.TrimSpace(string(data)), "the admin token in the file "+path)
	case !errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("admin token: %w", err)
	}
	secret := make([]byte, 32)
	rand.Read(secret) // it never fails
	token := base64.RawURLEncoding.EncodeToString(secret)
	if err := renameio.WriteFile(path, []byte(token+"\n"), 0o600, renameio.WithStaticPermissions(0o600)); err != nil {
		return "", fmt.Errorf("admin token: %w", err)
	}
	cfg.Logger.InfoContext(ctx, "server admin token generated", "file", path)
	return token, nil
}

// MinAdminToken is how many bytes the server admin token has at least. There is no delay for those who guess it.
const MinAdminToken = 16

func longEnough(token, what string) (string, error) {
	if n := len(token); n < MinAdminToken {
		return "", fmt.Errorf("%s is %d bytes long, it must be %d or more: openssl rand -hex 32 makes one", what, n, MinAdminToken)
	}
	return token, nil
}

// firstAdmin makes the administrator of the settings, if there is no user at all.
func (cfg Config) firstAdmin(ctx context.Context, users *system.Users) error {
	if cfg.AdminUser == "" {
		return nil
	}
	made, err := users.CreateFirst(ctx, cfg.AdminUser, cfg.AdminPassword)
	if err != nil {
		return fmt.Errorf("the first administrator, of admin.user and admin.password, can't be made: %w", err)
	}
	if made {
		cfg.Logger.InfoContext(ctx, "first administrator made", "username", system.FoldUsername(cfg.AdminUser))
	}
	return nil
}

// privateFiles are the files with secrets of the service.
func (cfg Config) privateFiles() []string {
	return append([]string{AdminTokenFile(cfg.DataDir)}, cfg.SecretFiles...)
}
