package snapshot

import (
	"testing"
	"time"

	"github.com/svcctl/svc/cli/command/commandtest"
	"github.com/svcctl/svc/pkg/client"
)

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
		"prune blog":                                   pruneOptions{Namespace: "blog"},
		"prune blog profile/daily --dry-run":           pruneOptions{Namespace: "blog", Profile: "daily", DryRun: true},
		"prune blog daily more":                        nil,
	})
}
