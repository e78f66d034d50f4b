package project_test

import (
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/project"
)

func TestSnapshotDir(t *testing.T) {
	t.Parallel()
	for member, want := range map[string]string{
		``:                              "snapshots",
		`snapshotPath: backup/daily/`:   "backup/daily",
		`snapshotPath: ./backup`:        "backup",
		`snapshotPath: ..`:              `snapshotPath: ".." is no folder inside the project's directory`,
		`snapshotPath: .`:               `snapshotPath: "." is no folder inside the project's directory`,
		`snapshotPath: a/../../b`:       `snapshotPath: "a/../../b" is no folder inside the project's directory`,
		`snapshotPath: collections`:     `snapshotPath: "collections" holds collections/a.yaml, which the config is made of: give snapshots a folder of their own`,
		`snapshotPath: collections/sub`: "collections/sub",
	} {
		dir := write(t, "-- project.yaml --\nnamespace: blog\n"+member+"\ncollections: [collections/a.yaml]\n-- collections/a.yaml --\n"+
			"{name: a, permissions: {public: {methods: {}}, user: {methods: {}}}}\n")
		p, problems := project.Load(dir, "project.yaml", env)
		got := strings.Join(lines(problems), "\n")
		if p != nil {
			got = p.SnapshotDir
		}
		if got != want && !strings.HasSuffix(got, " "+want) {
			t.Errorf("%s: %s\nwant %s", member, got, want)
		}
	}
}
