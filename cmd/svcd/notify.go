package main

import (
	"context"
	"log/slog"
	"net"
	"os"
)

// manager is the service manager that has started svcd and waits to be told when it serves, such as systemd with
// Type=notify: the address of its socket, "" without one. Source: sd_notify(3).
type manager string

// serviceManager takes the address out of the environment, so that no script's or hash's process reports for svcd.
func serviceManager() manager {
	m := manager(os.Getenv("NOTIFY_SOCKET"))
	_ = os.Unsetenv("NOTIFY_SOCKET") // fails for malformed names alone
	return m
}

// tell reports a state, such as READY=1. What keeps it from that is logged: the manager would give up waiting, and say no more than that.
func (m manager) tell(ctx context.Context, log *slog.Logger, state string) {
	if m == "" {
		return
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unixgram", string(m)) // @ for an abstract socket is Go's way of writing it, too
	if err == nil {
		_, err = conn.Write([]byte(state))
		_ = conn.Close()
	}
	if err != nil {
		log.WarnContext(ctx, "the service manager can't be told", "state", state, "error", err)
	}
}
