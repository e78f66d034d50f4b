package tui_test

import (
	"time"

	"github.com/svcctl/svc/pkg/api"
)

// ago is a moment before the one at which the clock of a bubble begins.
func ago(d time.Duration) api.Time {
	return api.Time{Time: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(-d)}
}

// sample is a service with two projects, one of which has searches in all states.
func sample() *service {
	return &service{
		projects: []api.Project{
			{ID: "p2", Namespace: "shop", Name: "The shop", Enabled: true, ConfigFile: "shop", CreatedAt: ago(26 * time.Hour)},
			{ID: "p1", Namespace: "blog", Name: "blog", Description: "A sample project", Enabled: true, ConfigFile: "blog", CreatedAt: ago(49 * time.Hour)},
		},
		statuses: map[string]api.ProjectStatus{"p1": sampleReady(), "p2": sampleBroken()},
		collections: []api.CollectionDescription{
			{Name: "articles", YourPermissions: sampleRights(), Fields: sampleFields(), Languages: []string{"en", "de"}, Projections: []string{"teaser"}, Meta: map[string]any{"label": "Articles"}, Indexes: []api.IndexDescription{
				{Name: "slug_1", Key: []string{"slug"}, Unique: true, State: api.IndexReady}, {Name: "minutes_-1", Key: []string{"-minutes"}, State: api.IndexBuilding},
			}, Search: []api.SearchDescription{
				{Name: "main", Mode: "text", Fields: []string{"title", "summary", "body"}},
				{Name: "shelf", Mode: "text", Fields: []string{"section", "tags"}, Eval: true},
				{Name: "means", Mode: "vector", Fields: []string{"title"}},
				{Name: "both", Mode: "rrf", Sources: []string{"main", "means"}},
			}},
			{Name: "authors", YourPermissions: map[string]api.MethodRights{"get": {Allow: true}}, Search: []api.SearchDescription{{Name: "names", Mode: "ngram", Fields: []string{"name"}}}},
			{Name: "settings", Singleton: true, YourPermissions: sampleRights()},
		},
		worker: api.SearchWorker{Collections: []api.CollectionQueue{
			{Collection: "articles", SearchQueue: api.SearchQueue{
				Pending: 15, InFlight: 4, Failed: 3, OldestAgeSeconds: 7.3, LastError: "the embedding group texts is offline",
				Searches: []api.SearchState{
					{Name: "main", Mode: "text", State: "rebuilding", Records: 240, Bytes: 115_200, Memory: 9_000, Done: 96, Total: 240},
					{Name: "means", Mode: "vector", State: "ready", Records: 228, Bytes: 62_000, Memory: 140_000, Group: "texts", Waiting: 12, Refused: 1, LastError: "the embedding group texts is offline"},
					{Name: "shelf", Mode: "text", State: "stale", Records: 238, Bytes: 12_800, Memory: 4_000, Failed: 2},
				},
			}},
			{Collection: "authors", SearchQueue: api.SearchQueue{Searches: []api.SearchState{{Name: "names", Mode: "ngram", State: "building", Total: 6}}}},
		}},
		groups: []api.EmbeddingGroup{
			{Name: "texts", Description: "for the samples", Reference: "demo/64", State: "degraded", Dimensions: 64, Golden: 3, Members: []api.EmbeddingMember{
				{Name: "demo", Type: "hash", State: "live", Since: ago(time.Hour), Breaker: "closed"},
				{
					Name: "far", Type: "openai", Model: "text-embedding-3-small", State: "degraded", Since: ago(3 * time.Minute), Breaker: "open", Failures: 5,
					RestsUntil: new(ago(-20 * time.Second)), CheckedAt: new(ago(10 * time.Second)), Error: "dial tcp 10.0.0.7:443: connect: connection refused",
				},
				{Name: "odd", Type: "tei", State: "quarantined", Since: ago(time.Hour), Breaker: "half-open", Failures: 1, Error: "its vectors are not those of the group"},
			}},
			{Name: "words", State: "offline", Sparse: true, Error: "no member was verified yet", Members: []api.EmbeddingMember{
				{Name: "splade", Type: "tei", State: "offline", Since: ago(2 * time.Second), Breaker: "closed", Error: "it was not verified yet"},
			}},
		},
		docs:     sampleDocs(3),
		plan:     samplePlan(),
		drift:    sampleDrift(),
		audit:    sampleAudit(5),
		tokens:   sampleTokens(),
		users:    sampleUsers(),
		scopes:   []string{"namespace.blog", "namespace.blog.articles.read", "project.read", "project.reload"},
		orgs:     []api.Org{{ID: "o1", Slug: "acme", Name: "Acme Ltd."}},
		teams:    []api.Team{{ID: "t1", Slug: "reviewers", Name: "Reviewers"}, {ID: "t2", Slug: "editors"}},
		jobs:     sampleJobs(),
		jobRuns:  sampleJobRuns(),
		records:  []string{sampleFused, sampleFound},
		reloaded: api.ReloadResult{Generation: 5, Changed: true},
		profiles: []api.SnapshotProfile{
			{Name: "daily", Description: "everything, each night", Enabled: true, IncludeMedia: true, CollectionDedup: true, Snapshots: 3, LastSnapshot: &sampleSnapshots()[0], Retention: &api.SnapshotRetention{KeepLast: 3, KeepDaily: 7}},
			{Name: "orders", Description: "for the accountants", Collections: []string{"orders", "customers"}},
			{Name: "backup", Description: "backups, of everything", Own: true, IncludeMedia: true},
			{Name: "before-restore", Description: "what restores have replaced", Own: true, IncludeMedia: true},
		},
		snapshots: sampleSnapshots(),
		snapRuns:  sampleRuns(),
		diff: api.SnapshotDiff{ID: sampleSnapshots()[1].ID, Collections: []api.SnapshotCollectionDiff{
			{Collection: "articles", Added: 1, Removed: 1, Changed: 2, Same: 236, More: true, Records: []api.SnapshotRecordDiff{
				{ID: "6b017e0468e809827a40da57", Change: api.DiffAdded},
				{ID: "6b017e0468e809827a40da58", Change: api.DiffChanged, Paths: []string{"title", "seo.title"}, More: true},
				{ID: "6b017e0468e809827a40da59", Change: api.DiffRemoved},
			}},
			{Collection: "authors", Same: 6, Files: 1, FileDiffs: []api.SnapshotFileDiff{{Record: "6b017e0468e809827a40da5a", Field: "photo", Name: "ann.jpg", Change: api.DiffRemoved}}},
		}},
	}
}

// sampleRights are what may be done with records.
func sampleRights() map[string]api.MethodRights {
	return map[string]api.MethodRights{
		"get": {Allow: true, Bulk: true, Count: true}, "post": {Allow: true, Bulk: true}, "put": {Allow: true}, "delete": {Allow: true},
	}
}

func sampleFields() []api.FieldDescription {
	return []api.FieldDescription{
		{Name: "title", Type: "string", Required: true, Validator: "max=80"}, {Name: "slug", Type: "string", Index: []string{"unique"}}, {Name: "section", Type: "string"},
		{Name: "minutes", Type: "number"}, {Name: "tags", Type: "string[]"}, {Name: "seo", Type: "object", SubFields: []api.FieldDescription{{Name: "title", Type: "string"}}},
	}
}

func sampleSnapshots() []api.Snapshot {
	one := func(id, profile string, age time.Duration, fresh int64) api.Snapshot {
		return api.Snapshot{
			ID: id, Profile: profile, Project: "blog", ConsistentAt: ago(age), Revision: "88c2ef6374c7b1e0", Generation: 4, Store: "embedded", Tool: "v1.2.3", Mode: "json", Media: true,
			Collections: []api.SnapshotCollection{{Name: "articles", Documents: 240, Bytes: 640_000}, {Name: "old", Documents: 6, Bytes: 900, Undeclared: true}},
			Counts:      api.SnapshotCounts{Documents: 246, MediaFiles: 500, MediaBytes: 100_000_000, Bytes: 100_400_000, NewBytes: fresh, Written: 3, Linked: 500, Deduplicated: 2},
		}
	}
	list := []api.Snapshot{
		one("19991231T235955Z-k3x9q2", "daily", 5*time.Second, 12_000), one("19991231T031500Z-p7m4aa", "daily", 21*time.Hour, 400_000),
		one("19991230T031500Z-q2d8zz", "daily", 45*time.Hour, 100_400_000), {ID: "19991229T120000Z-bqpm3k", Profile: "orders", Problem: "its manifest can't be read"},
	}
	list[1].Pinned, list[1].Verified = true, &api.SnapshotVerification{At: ago(time.Hour), Files: 505, Bytes: 100_400_000}
	list[2].Verified = &api.SnapshotVerification{At: ago(2 * time.Hour), Files: 505, Problems: 1, Dangling: 2, Found: []api.SnapshotFinding{{Path: "media/9f86d081884c7d65", Text: "it has another sum"}}}
	list[2].Warnings = []string{"the file cover.jpg of articles/6b01 is missing"}
	list[2].Counts.Missing = 1
	return list
}

func sampleRuns() []api.Run {
	ann := api.Actor{Kind: "user", Name: "ann"}
	return []api.Run{
		{
			ID: "6b01a2b3c4d5e6f708192b03", Kind: api.RunKindSnapshot, Name: "daily", Subject: "19991231T235955Z-k3x9q2", Status: api.RunSucceeded, Trigger: "manual", By: ann, Instance: "host:1",
			CreatedAt: ago(5 * time.Second), StartedAt: ago(5 * time.Second), FinishedAt: ago(2600 * time.Millisecond),
			Progress: api.RunProgress{Phase: "manifest", Done: 1, Total: 1, RunCounters: api.RunCounters{Written: 3, Linked: 500, Deduplicated: 2, Warnings: 1}},
			Phases: []api.RunPhase{
				{Phase: "plan", Done: 1, Total: 1, Seconds: 0.012}, {Phase: "collections", Done: 246, Total: 246, BytesDone: 640_900, Seconds: 1.5},
				{Phase: "media", Done: 500, Total: 500, BytesDone: 100_000_000, Seconds: 0.7}, {Phase: "manifest", Done: 1, Total: 1, Seconds: 0.188},
			},
			Events: []api.RunEvent{
				{ID: 7, Event: api.EventLog, Data: api.RunEventData{Level: "warn", Message: "the file cover.jpg of articles/6b01 is missing"}}, {ID: 9, Event: api.EventDone},
			},
			Result: []byte(`{"snapshot": "19991231T235955Z-k3x9q2", "profile": "daily", "warnings": ["the file cover.jpg of articles/6b01 is missing"]}`),
		},
		{
			ID: "6b01a2b3c4d5e6f708192b02", Kind: api.RunKindVerify, Name: "daily", Subject: "19991230T031500Z-q2d8zz", Status: api.RunFailed, Trigger: "schedule", By: api.Actor{Kind: "service"},
			CreatedAt: ago(2 * time.Hour), StartedAt: ago(2 * time.Hour), FinishedAt: ago(2*time.Hour - 3*time.Second),
			Phases: []api.RunPhase{{Phase: "verify", Done: 300, Total: 505, BytesDone: 50_000_000, BytesTotal: 100_400_000, Seconds: 3}},
			Error:  &api.RunError{Code: "snapshot_damaged", Message: "the snapshot 19991230T031500Z-q2d8zz is damaged: media/9f86d081884c7d65: it has another sum; indexes.json: it is not there; and 1 more"},
			Result: []byte(`{"snapshot": "19991230T031500Z-q2d8zz", "verified": {"files": 297, "problems": 3,
				"found": [{"path": "media/9f86d081884c7d65", "text": "it has another sum"}, {"path": "indexes.json", "text": "it is not there"}]}}`),
		},
	}
}

func sampleReady() api.ProjectStatus {
	at := ago(25 * time.Minute)
	return api.ProjectStatus{
		ID: "p1", Namespace: "blog", Phase: api.PhaseReady, ObservedGeneration: 4, Revision: "88c2ef6374c7b1e0",
		Conditions: []api.Condition{
			{Type: "Ready", Status: "True", Reason: "Serving", Message: "generation 4 is served", ObservedGeneration: 4, LastTransitionTime: at},
			{Type: "ConfigValid", Status: "True", Reason: "Loaded", Message: "5 collections", ObservedGeneration: 4, LastTransitionTime: at},
			{Type: "OutOfDate", Status: "False", Reason: "UpToDate", Message: "the files are what is served", ObservedGeneration: 4, LastTransitionTime: at},
			{Type: "SearchReady", Status: "Unknown", Reason: "Progressing", Message: "authors/names is being made (0 of 6 records)", ObservedGeneration: 4, LastTransitionTime: at},
		},
		Counts: map[string]int64{"articles": 240, "authors": 6},
	}
}

func sampleBroken() api.ProjectStatus {
	at := ago(40 * time.Second)
	return api.ProjectStatus{
		ID: "p2", Namespace: "shop", Phase: api.PhaseDegraded, ObservedGeneration: 2, Revision: "1200",
		Conditions: []api.Condition{
			{Type: "Ready", Status: "False", Reason: "Invalid", Message: "ConfigValid: the config is not valid", ObservedGeneration: 2, LastTransitionTime: at},
			{Type: "OutOfDate", Status: "True", Reason: "ChangedOnDisk", Message: "the files have changed and can't be served", ObservedGeneration: 2, LastTransitionTime: at},
			{Type: "Stalled", Status: "True", Reason: "Invalid", Message: "ConfigValid: the config is not valid", ObservedGeneration: 2, LastTransitionTime: at},
		},
		Problems: []api.ConfigProblem{
			{File: "pages.yaml", Line: 29, Column: 17, Path: "collections[3].meta.defaultSort[0]", Message: `there is no field "positon"; did you mean "position"?`},
			{File: "project.yaml", Line: 3, Column: 1, Path: "legacy", Message: "no effect", Warning: true},
		},
	}
}

// A hit of a search of mode rrf, and one of mode text.
const (
	sampleFused = `{"id":"6b017e0468e809827a40da57","slug":"gate","title":"How to mend the garden gate","minutes":7,
"_score":0.03226,"_highlights":{"body":["&lt;p&gt;Somebody repaired the <mark>garden</mark> <mark>gate</mark> before me &amp; left.&lt;/p&gt; &lt;p&gt;With Map&lt;String&gt; …"],"title":["How to mend the <mark>garden</mark> <mark>gate</mark>"]},
"_explain":{"mode":"rrf","sources":[{"search":"main","rank":1,"score":29.3,"share":0.01639},{"search":"means","rank":3,"score":0.42,"share":0.01587}]}}`
	sampleFound = `{"id":"6b017e0468e809827a40da58","title":"Before you throw out the gate","_score":8.25,
"_highlights":{"title":["Before you throw out the <mark>gate</mark>"]},
"_explain":{"mode":"text","parts":[{"field":"title","words":["gate"],"count":1,"records":7,"of":240,"score":5.5},{"field":"body","words":["gate"],"count":3,"records":87,"of":240,"score":2.75}],"recency":0.5}}`
)

// The events of a run that makes an index anew.
func sampleProgress(done int64) api.RunEvent {
	return api.RunEvent{Event: api.EventProgress, Data: api.RunEventData{
		Operation: "search", Name: "regenerate", Phase: "main", Collection: "articles", Done: done, Total: 240,
		ElapsedSeconds: float64(done) / 100, ETASeconds: new(float64(240-done) / 100), Message: "articles/main",
	}}
}

func sampleDone() api.RunEvent {
	return api.RunEvent{Event: api.EventDone, Data: api.RunEventData{Status: api.RunSucceeded, ElapsedSeconds: 2.4}}
}

// The events of a run that takes a snapshot.
func samplePhase(phase string, done, total int64) api.RunEvent {
	return api.RunEvent{Event: api.EventProgress, Data: api.RunEventData{
		Operation: "snapshot", Name: "daily", Phase: phase, Collection: map[string]string{"collections": "articles"}[phase], Done: done, Total: total,
		BytesDone: done * 2600, BytesTotal: total * 2600, ElapsedSeconds: float64(done) / 100, ETASeconds: new(float64(total-done) / 50), PerSecond: 50,
		RunCounters: api.RunCounters{Written: 1, Linked: done / 2},
	}}
}
