package local_test

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/embedding/local"
	"github.com/svcctl/svc/pkg/embedding/local/minilm"
)

// tokensOf gives what makes tokens by a folder, each written as it is in the vocabulary.
func tokensOf(tb testing.TB, dir fs.FS, vocab string, limit int) func(text string) string {
	tb.Helper()
	tokens, err := local.TokenizerOf(dir, limit)
	if err != nil {
		tb.Fatal(err)
	}
	pieces := strings.Split(vocab, "\n")
	return func(text string) string {
		var out []string
		for _, id := range tokens(text) {
			out = append(out, pieces[id])
		}
		return strings.Join(out, " ")
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	tokens := tokensOf(t, folderOf(map[string]string{"vocab.txt": tinyVocab}), tinyVocab, 12)
	for text, want := range map[string]string{
		"":                                  "",
		" \t\r\n\u00a0\u3000":               "",
		"The BREAD.":                        "the bread .",
		"bakers unwanted":                   "bake ##r ##s un ##want ##ed",
		"unwant unwante":                    "un ##want [UNK]",
		"Café cafe\u0301 CAFÉ":              "cafe cafe cafe",
		"中文bread中":                          "中 文 bread 中",
		"b\u200bread b\x00re\x07ad":         "bread bread",
		"the\x0bre bread\u0085":             "[UNK] bread",
		"the\u2028bread\tthe\nbread":        "the bread the bread",
		"a!!b..b":                           "a ! ! b . . b",
		"a+b":                               "a [UNK] b",
		"«a»":                               "[UNK] a [UNK]",
		"Straße STRASSE":                    "straße [UNK]",
		"İ I":                               "i i",
		"12":                                "1 ##2",
		"ab bb":                             "a ##b b ##b",
		strings.Repeat("a", 1) + " 🙂":       "a [UNK]",
		"a[MASK]b [CLS] [mask]":             "a [MASK] b [CLS] [UNK] [UNK] [UNK]",
		"[MASK":                             "[UNK] [UNK]",
		"\xff\xfebread \xffa":               "bread a",
		strings.Repeat("bread ", 1000):      strings.TrimSpace(strings.Repeat("bread ", 10)),
		strings.Repeat("bread ", 9) + "ab":  strings.Repeat("bread ", 9) + "a",
		"a" + strings.Repeat("b", 7):        "a ##b ##b ##b ##b ##b ##b ##b",
		"a" + strings.Repeat("b", 100):      "[UNK]",
		"é" + strings.Repeat("\u0301", 200): "[UNK]",
	} {
		if got := tokens(text); got != strings.Join(strings.Fields("[CLS] "+want+" [SEP]"), " ") {
			t.Errorf("%.60q: %s, want %s", text, got, want)
		}
	}
}

const tokenizerJSON = `{
	"added_tokens": [{"id": 1, "content": "[UNK]", "special": true}, {"id": 24, "content": "<new>"}],
	"normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
	"pre_tokenizer": {"type": "BertPreTokenizer"},
	"model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "@", "max_input_chars_per_word": 5,
		"vocab": {"[CLS]": 0, "[UNK]": 1, "[SEP]": 2, "a": 3, "A": 4, "É": 5, "é": 6, "E": 7, "e": 8, "@b": 9, "中": 10, "@中": 11, "<new>": 24}}}`

// TestTokenizerSettings has the files that say how text is cut: tokenizer.json, and what goes before it.
func TestTokenizerSettings(t *testing.T) {
	t.Parallel()
	vocab := "[CLS]\n[UNK]\n[SEP]\na\nA\nÉ\né\nE\ne\n@b\n中\n@中" + strings.Repeat("\n", 13) + "<new>"
	const text = "A É ab a中 abbbb abbbbb a<new>b [MASK"
	for name, c := range map[string]struct{ settings, want string }{
		"tokenizer.json alone": {``, "a e a @b a 中 a @b @b @b @b [UNK] a <new> [UNK] [UNK] [UNK]"},
		"nothing said":         {`{}`, "a e a @b a 中 a @b @b @b @b [UNK] a <new> [UNK] [UNK] [UNK]"},
		"cased":                {`{"do_lower_case": false}`, "A É a @b a 中 a @b @b @b @b [UNK] a <new> [UNK] [UNK] [UNK]"},
		"cased, no accents":    {`{"do_lower_case": false, "strip_accents": true}`, "A E a @b a 中 a @b @b @b @b [UNK] a <new> [UNK] [UNK] [UNK]"},
		"accents":              {`{"strip_accents": false}`, "a é a @b a 中 a @b @b @b @b [UNK] a <new> [UNK] [UNK] [UNK]"},
		"no ideographs":        {`{"tokenize_chinese_chars": false}`, "a e a @b a @中 a @b @b @b @b [UNK] a <new> [UNK] [UNK] [UNK]"},
		"null":                 {`{"strip_accents": null}`, "a e a @b a 中 a @b @b @b @b [UNK] a <new> [UNK] [UNK] [UNK]"},
		"other names":          {`{"cls_token": "a", "sep_token": {"content": "e", "lstrip": false}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{"tokenizer.json": tokenizerJSON}
			if c.settings != "" {
				files["tokenizer_config.json"] = c.settings
			}
			tokens := tokensOf(t, folderOf(files), vocab, 64)
			want := "[CLS] " + c.want + " [SEP]"
			got := tokens(text)
			if c.want == "" {
				got, want = tokens(""), "a e"
			}
			if got != want {
				t.Errorf("%s\nwant %s", got, want)
			}
		})
	}
}

func TestTokenizerRefused(t *testing.T) {
	t.Parallel()
	with := func(old, replaced string) map[string]string {
		if !strings.Contains(tokenizerJSON, old) {
			t.Fatalf("there is no %s", old)
		}
		return map[string]string{"tokenizer.json": strings.Replace(tokenizerJSON, old, replaced, 1)}
	}
	for name, files := range map[string]map[string]string{
		"nothing":                {},
		"no JSON":                {"tokenizer.json": "{"},
		"byte pairs":             with(`"WordPiece"`, `"BPE"`),
		"another normalizer":     with(`"BertNormalizer"`, `"NFC"`),
		"another pre-tokenizer":  with(`"BertPreTokenizer"`, `"Metaspace"`),
		"no length of words":     with(`"max_input_chars_per_word": 5`, `"max_input_chars_per_word": 0`),
		"a piece with lstrip":    with(`"content": "<new>"`, `"content": "<new>", "lstrip": true`),
		"a piece that is empty":  with(`"content": "<new>"`, `"content": ""`),
		"a piece of another id":  with(`{"id": 24,`, `{"id": 23,`),
		"an id below 0":          with(`"a": 3`, `"a": -3`),
		"no [CLS]":               with(`"[CLS]": 0, `, ``),
		"a vocabulary with none": {"vocab.txt": "a\nb\n"},
		"names that are numbers": {"vocab.txt": tinyVocab, "special_tokens_map.json": `{"cls_token": 1}`},
	} {
		dir := folderOf(files)
		if _, err := local.TokenizerOf(dir, 16); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestVocabularyAlone cuts the texts of the reference by vocab.txt and the settings beside it.
func TestVocabularyAlone(t *testing.T) {
	t.Parallel()
	dir := fstest.MapFS{}
	whole := os.DirFS(minilm.Dir(t))
	for _, name := range []string{"vocab.txt", "tokenizer_config.json", "special_tokens_map.json"} {
		text, err := fs.ReadFile(whole, name)
		if err != nil {
			t.Fatal(err)
		}
		dir[name] = &fstest.MapFile{Data: text}
	}
	tokens, err := local.TokenizerOf(dir, miniLM(t).MaxTokens())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range references(t) {
		if diff := cmp.Diff(r.IDs, tokens(r.Text)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", short(r.Text), diff)
		}
	}
}

func FuzzTokens(f *testing.F) {
	for _, text := range []string{"", "The BREAD.", "a[MASK]b [CLS]", "中文bread\u0301", "\xff\x00\u200b", "[MASK[MASK]]"} {
		f.Add(text)
	}
	tokens, err := local.TokenizerOf(folderOf(map[string]string{"vocab.txt": tinyVocab}), 12)
	if err != nil {
		f.Fatal(err)
	}
	last := strings.Count(tinyVocab, "\n") - 1
	f.Fuzz(func(t *testing.T, text string) {
		ids := tokens(text)
		if len(ids) < 2 || len(ids) > 12 || ids[0] != 2 || ids[len(ids)-1] != 3 {
			t.Fatalf("%q: %v", text, ids)
		}
		for _, id := range ids {
			if id < 0 || int(id) > last {
				t.Fatalf("%q: %v", text, ids)
			}
		}
		if spaced := tokens(" " + text + "\n"); utf8.ValidString(text) && fmt.Sprint(spaced) != fmt.Sprint(ids) {
			t.Errorf("%q: %v, and between white space %v", text, ids, spaced)
		}
	})
}
