package snapshot

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/svcctl/svc/cli/command/commandtest"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// TestUnknownSize: of a snapshot whose list of files can't be read, nobody says that it takes no room.
func TestUnknownSize(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	st := commandtest.State(t)
	st.Out = &out
	s := &api.Snapshot{ID: "20260301T031500Z-k3x9q2", Problem: "manifest.json: it is not what was written", Collections: []api.SnapshotCollection{{Name: "posts", Documents: 3, Bytes: 2048}}}
	if err := show(st, s, false); err != nil || !strings.Contains(out.String(), "2.0 KiB        unknown") || strings.Contains(out.String(), "0 B") {
		t.Errorf("%v:\n%s", err, out.String())
	}
}

// TestFilesOf: a restore tells of files what it has done, and of nothing that it has not.
func TestFilesOf(t *testing.T) {
	t.Parallel()
	for want, files := range map[string]api.RestoredFiles{
		"": {}, "missing 2": {Missing: 2}, "hardlinked 8": {Linked: 8}, "copied 1, there already 7": {Copied: 1, WereThere: 7},
	} {
		if got := FilesOf(&api.SnapshotRestored{Files: files}); got != want {
			t.Errorf("%+v: %q, want %q", files, got, want)
		}
	}
}

// TestMessageOf: a list of runs says which ones were dry runs and what they have found, and that a check has read a part only.
func TestMessageOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, status, input, result, want string }{
		{"restore", "succeeded", `{"snapshot": "a", "dryRun": true}`, `{"diff": {"same": true, "collections": [{"collection": "posts", "same": 3}]}}`, "dry run: nothing would change"},
		{"restore", "succeeded", `{"dryRun": true}`, `{"diff": {"collections": [{"added": 1, "removed": 2}, {"changed": 3, "files": 4}]}}`, "dry run: would add 1 record, change 3 records, remove 2 records, bring 4 files"},
		{"restore", "succeeded", `{"dryRun": true, "into": "copy"}`, `{"diff": {"collections": [{"added": 1}]}}`, "dry run into copy: would add 1 record"},
		{"restore", "failed", `{"dryRun": true}`, `{}`, "dry run: it fails"},
		{"restore", "succeeded", `{}`, `{"restored": {"into": "blog", "collections": [{"fromSnapshot": 2}]}}`, "2 records into blog"},
		{"verify", "succeeded", `{}`, `{"verified": {"files": 12}}`, "12 files, no problems"},
		{"verify", "succeeded", `{"sample": 0.1}`, `{"verified": {"files": 2, "sample": 0.1}}`, "2 files, no problems in a sample of 10%"},
		{"verify", "succeeded", `{"sample": 0.1}`, `{"checked": {"snapshots": 2}}`, "2 snapshots, no problems in a sample of 10%"},
		{"verify", "succeeded", `{}`, `{"checked": {"snapshots": 1}}`, "1 snapshot, no problems"},
	} {
		run := api.Run{Kind: c.kind, Status: c.status, Input: json.RawMessage(c.input), Result: json.RawMessage(c.result)}
		if c.status == "failed" {
			run.Error = &api.RunError{Message: "it fails"}
		}
		if got := MessageOf(&run); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.input, c.result, got, c.want)
		}
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	const one, other = "20260301T031500Z-k3x9q2", "20260302T031500Z-p7m4aa"
	commandtest.Options(t, map[string]commandtest.Verb{
		"create": commandtest.Of(newCreate), "diff": commandtest.Of(newDiff), "verify": commandtest.Of(newVerify), "drill": commandtest.Of(newDrill), "restore": commandtest.Of(newRestore), "prune": commandtest.Of(newPrune),
	}, map[string]any{
		"create blog":                              createOptions{Namespace: "blog"},
		"create blog daily":                        createOptions{Namespace: "blog", Profile: "daily"},
		"create -n blog daily --no-wait":           createOptions{Namespace: "blog", Profile: "daily", Wait: Wait{No: true}},
		"create -n blog blog --watch --timeout 5m": createOptions{Namespace: "blog", Wait: Wait{Timeout: 5 * time.Minute}},
		"create":                                     nil,
		"create blog daily --watch --no-wait":        nil,
		"diff blog " + one:                           diffOptions{Namespace: "blog", ID: one},
		"diff blog snapshot/" + one + " " + other:    diffOptions{Namespace: "blog", ID: one, Query: client.SnapshotDiffQuery{With: other}},
		"diff -n blog " + one + " snapshot/" + other: diffOptions{Namespace: "blog", ID: one, Query: client.SnapshotDiffQuery{With: other}},
		"diff -n blog " + one + " --limit 5":         diffOptions{Namespace: "blog", ID: one, Query: client.SnapshotDiffQuery{Limit: 5}},
		"diff blog " + one + " --collection a":       diffOptions{Namespace: "blog", ID: one, Query: client.SnapshotDiffQuery{Collection: "a"}},
		"diff blog " + one + " --limit -1":           nil,
		"diff " + one:                                nil,
		"verify blog " + one:                         verifyOptions{Namespace: "blog", ID: one},
		"verify blog " + one + " --sample 10%":       verifyOptions{Namespace: "blog", ID: one, Sample: 0.1},
		"verify blog " + one + " --sample 0.25":      verifyOptions{Namespace: "blog", ID: one, Sample: 0.25},
		"verify blog " + one + " --sample 0":         nil,
		"verify blog " + one + " --sample NaN":       nil,
		"verify blog " + one + " --sample 101%":      nil,
		"drill blog":                                 drillOptions{Namespace: "blog"},
		"drill blog --profile daily":                 drillOptions{Namespace: "blog", Profile: "daily"},
		"drill blog snapshot/" + one:                 drillOptions{Namespace: "blog", ID: one},
		"drill blog " + one + " --profile daily":     nil,
		"restore blog " + one:                        restoreOptions{Namespace: "blog", ID: one, How: How{Mode: "replace"}},
		"restore blog " + one + " --collections a,b --no-media --mode merge --to-namespace shop -y": restoreOptions{
			Namespace: "blog", ID: one, How: How{Collections: []string{"a", "b"}, NoMedia: true, Mode: "merge", Into: "shop", Yes: true},
		},
		"restore blog " + one + " --dry-run":           restoreOptions{Namespace: "blog", ID: one, How: How{Mode: "replace", DryRun: true}},
		"restore blog " + one + " --dry-run --no-wait": nil,
		"restore blog " + one + " --mode all":          nil,
		"restore blog " + one + " --collections= -y":   nil,
		"restore blog " + one + " --to-namespace= -y":  nil,
		"prune blog":                         pruneOptions{Namespace: "blog"},
		"prune blog profile/daily --dry-run": pruneOptions{Namespace: "blog", Profile: "daily", DryRun: true},
		"prune blog daily more":              nil,
	})
}

// TestEmptyArgument: a variable that is not set is no profile, and does not stand for all of them.
func TestEmptyArgument(t *testing.T) {
	t.Parallel()
	cmd := newPrune(commandtest.State(t), func(_ context.Context, got *pruneOptions) error {
		t.Errorf("it is taken as %+v", *got)
		return nil
	})
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetArgs([]string{"blog", "", "--yes"})
	if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), "the last argument is empty") {
		t.Error(err)
	}
}
