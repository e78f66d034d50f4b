package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"
)

// Limits of a connection (rows S55 and R14 of the fault list in docs/security.md). Bodies have limits of their own in
// pkg/httpapi, which also gives large answers more time.
const (
	readHeaderTimeout = 5 * time.Second
	writeTimeout      = time.Minute
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 512 << 10 // httpapi refuses less than that in its own words
)

func (a *App) listen(ctx context.Context, handler http.Handler) error {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", net.JoinHostPort(a.cfg.Host, strconv.Itoa(a.cfg.Port)))
	if err != nil {
		hint := "check api.host and api.port"
		switch {
		case errors.Is(err, syscall.EADDRINUSE):
			hint = "stop the program that uses the port, or set another api.port"
		case errors.Is(err, syscall.EACCES):
			hint = "set an api.port above 1023, or allow svcd to use lower ones"
		}
		return fmt.Errorf("%w: %s", err, hint)
	}
	a.listener = listener
	a.server = &http.Server{
		Handler:           a.parting(handler),
		ReadHeaderTimeout: readHeaderTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(a.cfg.Logger.Handler(), slog.LevelDebug), // broken connections
	}
	return nil
}

// parting has clients go to another instance with their next request once this one is stopping.
func (a *App) parting(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.stopping.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// Addr is the address that the service listens on.
func (a *App) Addr() string { return a.listener.Addr().String() }
