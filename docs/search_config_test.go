package docs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/search"
)

// searching is the section of config.md on search configs; its examples are loaded.
func searching() string {
	return "## Searching\n\n" +
		"`search` of a [Collection](#collection) lists ways to search it ([SearchConfig](#searchconfig)), at most 16; `q=` of a request searches by the first, with\n" +
		"`qName=` by another. Nobody finds anything by a field that is hidden from them. The mode says how it searches:\n\n" +
		`| Mode | Finds | Settings |
|---|---|---|
| ` + "`text`" + ` | words, whatever their endings in the language of the text, ranked by BM25 | ` + "`text`, `score`" + ` |
| ` + "`ngram`" + ` | parts of words, for names, codes and search as you type | ` + "`ngram`, `score`" + ` |
| ` + "`regex`" + ` | what a regular expression matches, in the order of ` + "`sort`" + `: it has no index and no ranks | ` + "`regex`" + ` |
| ` + "`vector`" + ` | what means the same, by the vectors of an [embedding group](embeddings.md) | ` + "`vector`, `score`" + ` |
| ` + "`rrf`" + ` | what other searches find, by the places at which they do: 1/(k+place), times their weight, summed | ` + "`rrf`" + ` |

Settings of another mode are refused. ` + "`fields`" + ` may be strings, lists of strings, and ` + "`any`" + `, of which texts are searched; of an object, a file or a list of objects
they name what is inside (` + "`seo.title`, `photo.alt`" + `). Without ` + "`fields`" + ` all of type ` + "`string` and `string[]`" + ` are searched, but for relations and what is hidden from everybody
(` + "`hidden: true`, `hiddenFields`" + `). Translations are searched with their field. ` + "`filter`" + ` is one as in [queries](api.md#query-parameters), not through relations: other records are not found.

` + "```yaml" + `
search:
  - name: words              # q=…
    mode: text
    fields: [title, body, seo.title]
    text: {fuzziness: auto, prefix: true, operator: or}   # auto and or are the defaults
    score:
      weights: {title: 3}    # 1 for the others
      minScore: 0.5
      recency: {field: publishedAt, halfLife: 90d, weight: 0.5}
    filter: {status: published}
    autoRegenerate: true
` + "```" + `

` + "```yaml" + `
search:
  - name: names              # q=…&qName=names: what begins with, ends in or has these letters
    mode: ngram
    fields: [title]
    ngram: {min: 2, max: 4}  # 2 and 3 without; max is at most 8 above min
` + "```" + `

` + "```yaml" + `
search:
  - name: exact
    mode: regex
    fields: [code]
    regex: {options: i}      # the default; '' tells small letters from capitals
` + "```" + `

` + "```yaml" + `
search:
  - name: best               # the first, so that q searches by both
    mode: rrf
    rrf: {sources: [words, names], k: 60, topK: 100, weights: {words: 2}}   # 60, 100 and 1 are the defaults
  - {name: words, mode: text, fields: [title, body]}
  - {name: names, mode: ngram, fields: [title]}
` + "```" + `

` + "```yaml" + `
search:
  - name: meaning
    mode: vector
    vector: {group: texts, fields: [title, body]}   # of embedding.groups of the service's settings
    score: {minScore: 0.3}                          # the cosine; recency works as above, weights don't
    autoRegenerate: true
` + "```" + `

The fields of a search of mode ` + "`vector`" + ` become one text: who may not see all of them can't use it.

` + "```yaml" + `
search:
  - name: offers             # by what a script makes of the fields, which may be of any type
    mode: text
    fields: [title, price, seo]
    eval: "[ctx.doc.title || '', ctx.doc.price < 20 ? 'cheap' : 'dear', (ctx.doc.seo || {}).title || '']"   # or a .js or .ts file
` + "```" + `

**Text by a script.** ` + "`eval`" + `, of modes ` + "`text`, `ngram` and `vector`" + `, gives the text of a record in place of its fields: a text or a list of texts, of 1 MiB at most. ` + "`ctx.doc`" + ` has ` + "`fields`" + `, which
are required and may be any, and nothing else; ` + "`ctx.lang`" + ` is the language whose text is asked for, ` + "`''`" + ` for that of the fields themselves. [Search](search.md#text-by-a-script) tells more.

The sources of an ` + "`rrf`" + ` are of modes ` + "`text`, `ngram` and `vector`" + `. Weights are above 0 and at most 1000.

**Text indexes.** ` + "`index: [text]`" + ` of a field, and keys ` + "`$text:path`" + ` of [indexes](#index), make one search more, ` + "`text`" + `, of mode text, behind those that
` + "`search`" + ` lists: in a collection without ` + "`search`" + ` it is that of ` + "`q`" + `. A search config of that name stands in its place. An index has either text keys or others,
and one with text keys is neither unique nor sparse.

` + "```yaml" + `
defaultLanguage: en
languageOverride: language   # the field by which a record says what it is in
indexes:
  - {name: words, key: ["$text:title", "$text:body"]}
` + "```" + `

**Languages.** Those of ` + "`text.language`" + `, for all records, go before what a record says in the field ` + "`languageOverride`" + `, that before ` + "`defaultLanguage`" + `, and that before the default
of ` + "`meta.i18n`" + `. Translations are in their own language. That field, and that of ` + "`recency`" + `, may not be hidden from anybody: what is found would tell of them.
Known are ` + "`" + strings.Join(search.LanguageNames(), "`, `") + "`" + `; of others, and with ` + "`none`" + `, words are searched as they are written.

**Changes.** Fields, language, ` + "`eval` with all that is in its files, `filter`" + `, lengths of n-grams, and a date of ` + "`recency`" + ` are in the index: where they change it has to be made anew, which ` + "`autoRegenerate: true`" + ` does in the
background. Without it the index of before answers until ` + "`regenerate-search`" + ` is called; that of text indexes is always made anew by itself. What else changes holds at once. A
[plan](gitops.md) tells which it is. With ` + "`async: true`" + ` writes don't wait until they can be found.

`
}

// TestSearchExamples loads the examples of the section.
func TestSearchExamples(t *testing.T) {
	t.Parallel()
	examples := 0
	for i, part := range strings.Split(searching(), "```") {
		example, ok := strings.CutPrefix(part, "yaml\n")
		if i%2 == 0 || !ok {
			continue
		}
		examples++
		dir := t.TempDir()
		config := "namespace: blog\ncollections:\n  - name: articles\n    " + strings.ReplaceAll(strings.TrimSpace(example), "\n", "\n    ") + `
    fields:
      - {name: title, type: string}
      - {name: body, type: string}
      - {name: code, type: string}
      - {name: status, type: string}
      - {name: language, type: string}
      - {name: publishedAt, type: date}
      - {name: price, type: number}
      - {name: seo, type: object, subFields: [{name: title, type: string}]}
    permissions: {public: {methods: {get: true}}, user: {methods: {}}}
`
		if err := os.WriteFile(filepath.Join(dir, "project.yaml"), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		p, problems := project.Load(dir, "project.yaml", nil)
		if len(problems) > 0 || len(p.Collections["articles"].Searches) == 0 {
			t.Errorf("%s\n%v", config, problems)
		}
	}
	if examples != 7 {
		t.Errorf("%d examples", examples)
	}
}
