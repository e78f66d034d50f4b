package schema_test

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/schema"
)

// inMemory reads files.
type inMemory map[string][]byte

func (m inMemory) ReadFile(name string) ([]byte, error) {
	data, ok := m[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return data, nil
}

func loaded(t *testing.T, files inMemory, entry string) *schema.Loaded {
	t.Helper()
	env := func(string) (string, bool) { return "from-env", true }
	l, problems := schema.LoadProject(files, entry, env, files)
	if problems.Err() {
		t.Fatalf("%v\n%s", problems, files[entry])
	}
	return l
}

// TestDetach: a config gets another namespace, loses its tokens, and is otherwise what it was, comments included.
func TestDetach(t *testing.T) {
	const sets = "public: {methods: {get: true}}, user: {methods: {}}"
	tests := map[string]struct {
		files  inMemory
		want   map[string]string // files that are others
		tokens int
	}{
		"a plain namespace": {
			inMemory{"project.yaml": []byte("# ours\nnamespace: blog   # stays\ncollections: [ ]\n")},
			map[string]string{"project.yaml": "# ours\nnamespace: \"copy\"   # stays\ncollections: [ ]\n"}, 0,
		},
		"in quotes, at the end, with other line ends": {
			inMemory{"project.yaml": []byte("collections: []\r\nnamespace: 'blog'")},
			map[string]string{"project.yaml": "collections: []\r\nnamespace: \"copy\""}, 0,
		},
		"of the environment": {
			inMemory{"project.yaml": []byte("namespace: ${env:NS}\ncollections: []\n")},
			map[string]string{"project.yaml": "namespace: \"copy\"\ncollections: []\n"}, 0,
		},
		"of an object in braces": {
			inMemory{"project.yaml": []byte("{namespace: blog, collections: []}\n")},
			map[string]string{"project.yaml": "{namespace: \"copy\", collections: []}\n"}, 0,
		},
		"tokens": {
			inMemory{"project.yaml": []byte("namespace: blog\nadmin:\n  # of the deployment\n  tokens: [{value: secret-token}]\n# all\ncollections:\n  - name: a # first\n    permissions: {" + sets + ", \"token:abcdef\": {methods: {put: true}}}\n  - name: b\n    permissions: ./rights.yaml\n"),
				"rights.yaml": []byte("public: {methods: {get: true}}\nuser:\n  methods: {} # none\nToken:abcdef:\n  methods: {put: true}\nteam:eds:\n  methods: {put: true}\n"),
				"slug.js":     []byte("token:abcdef")},
			map[string]string{
				"project.yaml": "namespace: \"copy\"\nadmin: {}\n# all\ncollections:\n  - name: a # first\n    permissions: {" + sets + "}\n  - name: b\n    permissions: ./rights.yaml\n",
				"rights.yaml":  "public: {methods: {get: true}}\nuser:\n  methods: {} # none\nteam:eds:\n  methods: {put: true}\n",
			}, 3,
		},
		"JSON": {
			inMemory{"project.json": []byte("{\n  // ours\n  \"namespace\": \"blog\",\n  \"admin\": {\"tokens\": [\"secret-token\"]},\n  \"collections\": [{\"name\": \"a\", \"permissions\": {\"public\": {\"methods\": {}}, \"user\": {\"methods\": {}}, \"token:abcdef\": {\"methods\": {\"put\": true}}}}]\n}\n")},
			map[string]string{"project.json": "{\n  // ours\n  \"namespace\": \"copy\",\n  \"admin\": {},\n  \"collections\": [{\"name\": \"a\", \"permissions\": {\"public\": {\"methods\": {}}, \"user\": {\"methods\": {}}}}]\n}\n"}, 2,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			entry := "project.yaml"
			if tt.files[entry] == nil {
				entry = "project.json"
			}
			out, tokens, err := schema.Detach(tt.files, entry, "copy")
			if err != nil || tokens != tt.tokens {
				t.Fatalf("%d tokens, %v", tokens, err)
			}
			for name, data := range tt.files {
				want, ok := tt.want[name]
				if !ok {
					want = string(data)
				}
				if diff := cmp.Diff(want, string(out[name])); diff != "" {
					t.Errorf("%s (-want +got):\n%s", name, diff)
				}
			}
			from, to := loaded(t, tt.files, entry), loaded(t, out, entry)
			if to.Project.Namespace != "copy" || !schema.Detached(from, to) {
				t.Errorf("it is not what it was: %+v", to.Project)
			}
			if tokens > 0 && schema.Detached(from, from) {
				t.Error("a config with tokens counts as one without")
			}
		})
	}
}

// TestDetachRefuses what it can't change, and tells when what it has made is not what is wanted.
func TestDetachRefuses(t *testing.T) {
	for _, text := range []string{"", "[]", "collections: []\n", "namespace:\n  - a\n", "namespace: |\n  blog\n", "{{{"} {
		if out, _, err := schema.Detach(inMemory{"project.yaml": []byte(text)}, "project.yaml", "copy"); err == nil && strings.Contains(string(out["project.yaml"]), "copy") {
			l, problems := schema.LoadProject(inMemory(out), "project.yaml", nil, inMemory{})
			if !problems.Err() && l.Project.Namespace == "copy" {
				t.Errorf("%q became %q", text, out["project.yaml"])
			}
		}
	}
	apart := inMemory{"project.yaml": []byte("namespace: blog\nadmin: ./admin.yaml\ncollections: []\n"), "admin.yaml": []byte("tokens: [{value: secret-token}]\n")}
	out, _, err := schema.Detach(apart, "project.yaml", "copy")
	if err != nil || schema.Detached(loaded(t, apart, "project.yaml"), loaded(t, out, "project.yaml")) {
		t.Errorf("tokens that stay are not seen: %v", err)
	}
	other := inMemory{"project.yaml": []byte("namespace: copy\nstrictFields: true\ncollections: []\n")}
	same := inMemory{"project.yaml": []byte("namespace: blog\ncollections: []\n")}
	if schema.Detached(loaded(t, same, "project.yaml"), loaded(t, other, "project.yaml")) {
		t.Error("another config counts as the same")
	}
}
