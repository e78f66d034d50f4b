//go:build !unix

package frame

import tea "charm.land/bubbletea/v2"

// suspend does nothing: this system has no way to stop a process and go on with it.
func suspend() tea.Cmd { return nil }
