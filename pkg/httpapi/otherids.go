package httpapi

import (
	"bytes"
	"regexp"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
)

// idInText is the id of a snapshot in an answer, with the quotes that are around it where it is a value of its own.
var idInText = regexp.MustCompile(`"?[0-9]{8}T[0-9]{6}Z-[a-z0-9]{6}"?`)

// withoutOthers takes from the texts of an answer the ids of snapshots that its caller does not see: what is wrong with one snapshot is told by others, of whatever profile, that have the
// same files. What an answer is about, which are ids that are values of their own, the handler has let the caller see. It is the one place for this, which each answer goes through:
// that of a snapshot, of a run, an event and a refusal.
func (r *request) withoutOthers(body []byte) []byte {
	if r.seesSnapshot(nil) {
		return body
	}
	seen := map[string]bool{}
	return idInText.ReplaceAllFunc(body, func(found []byte) []byte {
		id := bytes.Trim(found, `"`)
		if len(found) == len(id)+2 {
			return found
		}
		may, known := seen[string(id)]
		if !known {
			may = r.seesSnapshot(id)
			seen[string(id)] = may
		}
		if may {
			return found
		}
		return bytes.Replace(found, id, []byte("another snapshot"), 1)
	})
}

// seesSnapshot says that the caller sees a snapshot; nil: all of them. One that is not there any more may have been of any profile.
func (r *request) seesSnapshot(id []byte) bool {
	sees := r.profiles
	if need := r.route.right; r.project != nil && r.principal != nil && need.kind == rightServed && need.name == access.ProjectBackup && r.server.cfg.Records.MayOperate(r.project, r.principal, access.ProjectSnapshot) != nil {
		sees = &profiles{named: map[string]bool{api.ProfileBackup: true}}
	}
	if sees.everything() || id == nil {
		return sees.everything()
	}
	profile, err := r.server.cfg.Snapshots.Where(r.Context(), r.project, string(id))
	return err == nil && sees.has(profile)
}
