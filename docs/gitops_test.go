package docs_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/svcctl/svc/controllers"
)

const (
	gitopsProject  = "namespace: blog\nstrictFields: true\ncollections: [articles.yaml]\n"
	gitopsArticles = `name: articles
permissions:
  public: {methods: {get: true, post: true}}
  user: {methods: {get: true}}
fields:
  - {name: title, type: string}
`
	gitopsSubtitle = gitopsArticles + "  - {name: subtitle, type: string}\n"
	gitopsBroken   = gitopsArticles + "  - {name: subtitle, type: sting}\n"
)

// TestGitOps takes changes through a repository as gitops.md says: a pull request, its merge, one that is not valid, one that was a
// mistake, and the way back.
func TestGitOps(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	story := map[string]string{}
	for _, block := range blocks(t, "gitops.md", "sh") {
		if title, _, ok := strings.Cut(block, "\n"); ok && strings.HasPrefix(title, "# ") {
			story[strings.TrimPrefix(title, "# ")] = block
		}
	}
	step := func(title string) string {
		t.Helper()
		if story[title] == "" {
			t.Fatalf("gitops.md has no block %q", title)
		}
		return story[title]
	}
	d := newDeskWatching(t, controllers.WatchNotify)
	// edit commits the collection's file on a branch of the author's checkout and pushes it.
	edit := func(branch, articles string) {
		t.Helper()
		writeFiles(t, d.dir, map[string]string{"author/projects/blog/articles.yaml": articles})
		d.run("cd author/projects/blog; git checkout --quiet -B " + branch + "; git add .; git commit --quiet --allow-empty -m change; git push --quiet origin " + branch)
	}
	// fails runs lines of which one has to fail, with that exit code.
	fails := func(code, lines string) string {
		t.Helper()
		return d.run("code=0; ( set -e; " + lines + " ) || code=$?; test $code -eq " + code)
	}

	writeFiles(t, d.dir, map[string]string{
		".gitconfig":                        "[user]\nname = Ann\nemail = ann@example.com\n[init]\ndefaultBranch = main\n",
		"author/projects/blog/project.yaml": gitopsProject,
	})
	d.run("git init --quiet --bare origin.git; cd author/projects/blog; git init --quiet; git remote add origin ../../../origin.git")
	edit("main", gitopsArticles)
	d.run("git clone --quiet origin.git projects/blog")
	d.prints(d.run(step("A merge")), "blog is registered")
	d.run(`svcctl doc create blog articles -d '{"title": "One"}'`)

	// A pull request that is not valid is refused, on the line; one that is valid says what it would change, and changes nothing.
	edit("subtitle", gitopsBroken)
	fails("1", "cd author; "+step("A pull request"))
	d.prints(fails("1", "cd author; export GITHUB_ACTIONS=true; "+step("A pull request")),
		"::error file=projects/blog/articles.yaml,line=7,col=28::", `did you mean "string"?`)
	d.prints(fails("1", "cd author; svcctl project validate --strict projects/blog -o sarif"), `"uri": "projects/blog/articles.yaml"`, `"startLine": 7,`)
	edit("subtitle", gitopsSubtitle)
	d.prints(d.run("cd author; "+step("A pull request")), "projects/blog: valid: project blog", "articles.subtitle", "changes: 1, risk: safe, hash: ")
	d.prints(fails("6", "cd author; svcctl apply ./projects/blog"), "the service reads other files of blog")
	d.prints(d.run("svcctl project status blog"), "Generation:    1\n")

	// Its merge is served.
	edit("main", gitopsSubtitle)
	d.prints(d.run(step("A merge")), "articles.subtitle")
	d.prints(d.run("svcctl project status blog"), "Generation:    2\n")
	d.run(`svcctl doc create blog articles -d '{"title": "Two", "subtitle": "b"}'`)

	// One that is not valid, which nobody checked, leaves production as it is, and it is told why.
	edit("main", gitopsBroken)
	d.prints(fails("1", step("A merge")), "articles.yaml:7:28: ")
	d.prints(d.run(step("What is wrong")), "Generation:    2\n", "articles.yaml:7:28: ", "Invalid")
	d.run(`svcctl doc create blog articles -d '{"title": "Three", "subtitle": "c"}'`)

	// One that is above the risk allowed is refused, too; whoever allows it has a way back.
	edit("main", strings.Replace(gitopsSubtitle, "public: {methods: {get: true", "public: {methods: {get: false", 1))
	d.prints(fails("1", step("A merge")), "breaking")
	d.prints(d.run("curl --silent http://127.0.0.1:8080/api/v1/_/blog/articles"), `"One"`, `"Three"`)
	d.run("svcctl apply ./projects/blog --allow breaking --timeout 60s")
	d.prints(d.run("curl --silent --output /dev/null --write-out '%{http_code}' http://127.0.0.1:8080/api/v1/_/blog/articles"), "403")
	d.prints(d.run(step("A rollback")), "blog")
	d.prints(d.run("curl --silent http://127.0.0.1:8080/api/v1/_/blog/articles"), `"One"`, `"Three"`)
	d.prints(d.run("svcctl project status blog; svcctl project history blog"), "RolledBack", "rollback to 2")
}
