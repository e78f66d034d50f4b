package cli_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/api"
)

// TestWhoamiNames: organizations and teams are told by their names, as far as the caller may read them.
func TestWhoamiNames(t *testing.T) {
	t.Parallel()
	for refused, want := range map[string]string{
		"":      "Organizations:   acme\nTeams:           press, 6b01a2b3c4d5e6f708192a02\n",
		"/team": "Organizations:   acme\nTeams:           6b01a2b3c4d5e6f708192a01, 6b01a2b3c4d5e6f708192a02\n",
	} {
		p := start(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
			switch path := strings.TrimPrefix(r.URL.Path, api.Prefix); {
			case path == refused:
				answer(http.StatusForbidden, `{"status":403,"code":"permission_denied"}`)(w, r)
			case path == "/me":
				answer(http.StatusOK, `{"kind":"user","username":"ann","orgIds":["6b01a2b3c4d5e6f708192a00"],"teamIds":["6b01a2b3c4d5e6f708192a01","6b01a2b3c4d5e6f708192a02"]}`)(w, r)
			case path == "/org":
				answer(http.StatusOK, `{"items":[{"id":"6b01a2b3c4d5e6f708192a00","slug":"acme"}]}`)(w, r)
			default:
				answer(http.StatusOK, `{"items":[{"id":"6b01a2b3c4d5e6f708192a01","slug":"press"}]}`)(w, r)
			}
		}))
		if code := p.run(t, "whoami"); code != 0 || !strings.Contains(p.out.String(), want) {
			t.Errorf("%q refused: exit code %d: %s%s", refused, code, p.out.String(), p.err.String())
		}
	}
}
