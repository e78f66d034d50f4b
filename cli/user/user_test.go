package user

import (
	"testing"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/command/commandtest"
	"github.com/svcctl/svc/pkg/api"
)

func TestParse(t *testing.T) {
	t.Parallel()
	ann, mail, no, scopes := "ann", "a@example.com", false, []string{"project.read", "user.read"}
	commandtest.Options(t, map[string]commandtest.Verb{
		"create": commandtest.Of(newCreate),
		"update": commandtest.Of(newUpdate),
		"passwd": commandtest.Of(newPasswd),
	}, map[string]any{
		"create ann --email a@example.com --scope project.read,user.read --password-file f": createOptions{
			Username: "ann", Password: command.Password{File: "f"},
			Write: api.UserWrite{Username: &ann, Email: &mail, Scopes: &scopes},
		},
		"create ann --org acme,beta --team editors --generate": createOptions{
			Username: "ann", Password: command.Password{Generate: true},
			Write: api.UserWrite{Username: &ann, OrgIDs: &[]string{"acme", "beta"}, TeamIDs: &[]string{"editors"}},
		},
		"update bob --org=":                        updateOptions{Username: "bob", Write: api.UserWrite{OrgIDs: &[]string{}}},
		"create ann --generate --password-stdin":   nil,
		"create":                                   nil,
		"update bob --active=false --username ann": updateOptions{Username: "bob", Write: api.UserWrite{Username: &ann, Active: &no}},
		"update bob":                               nil,
		"passwd":                                   passwdOptions{},
		"passwd ann --generate":                    passwdOptions{Username: "ann", Password: command.Password{Generate: true}},
		"passwd ann --current-password-file f":     nil,
	})
}
