package embedded

import (
	"github.com/svcctl/svc/pkg/store"
)

// MarkIndex begins an index build and leaves it there, as an end of the process does.
func MarkIndex(c store.Collection, def store.Index) error {
	_, _, err := c.(*Collection).markIndex(def)
	return err
}
