package output_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/cli/output"
)

func TestEscape(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain ä 日本 😀":      "plain ä 日本 😀",
		"a\x1b[31mred\x07":  `a\x1b[31mred\x07`,
		"a\nb\tc\rd":        `a\nb\tc\rd`,
		"c1\u009b31m":       `c1\u009b31m`,
		"\x9b31m":           `\x9b31m`,
		"abc\u202egpj.exe":  `abc\u202egpj.exe`,
		"\u2066x\u2069\x7f": `\u2066x\u2069\x7f`,
		"ad\u200bmin\u200f": `ad\u200bmin\u200f`,
		"\ufeffa\u2060b":    `\ufeffa\u2060b`,
		"e\u0301 ❤\ufe0f":   "e\u0301 ❤\ufe0f", // an accent and a kind of emoji are seen

		// Joiners stay where they are seen: between letters that are written with them.
		"می\u200cخواهم کتاب\u200cها":                   "می\u200cخواهم کتاب\u200cها",
		"بَ\u200cب ه\u0640\u200cه":                     "بَ\u200cب ه\u0640\u200cه",
		"क\u094d\u200dष क\u094d\u200cष র\u200d\u09cdয": "क\u094d\u200dष क\u094d\u200cष র\u200d\u09cdয",
		"ශ\u0dca\u200dරී":                              "ශ\u0dca\u200dරී",
		"می\u200c":                                     `می\u200c`,
		"\u200cمی":                                     `\u200cمی`,
		"می\u200c\u200cخواهم":                          `می\u200c\u200cخواهم`,
		"می\u200c خواهم":                               `می\u200c خواهم`,
		"می\u200ca ۱\u200c۲ م\u200d\x1b":               `می\u200ca ۱\u200c۲ م\u200d\x1b`,
		"م\u200c\xd9":                                  `م\u200c\xd9`,
		"ad\u200cmin 1\u200d2 ш\u200dш 日\u200c本":       `ad\u200cmin 1\u200d2 ш\u200dш 日\u200c本`,
		"👩\u200d🚒 ❤\ufe0f\u200d🔥":                      `👩\u200d🚒 ❤` + "\ufe0f" + `\u200d🔥`, // whose width is another on each terminal
	} {
		if got := output.Escape(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	if got := output.EscapeLines("a\x1b\nb"); got != "a\\x1b\nb" {
		t.Errorf("got %q", got)
	}
	var b bytes.Buffer
	if _, err := output.EscapeWriter(&b).Write([]byte("a\x1b\tb\nc")); err != nil || b.String() != "a\\x1b\tb\nc" {
		t.Errorf("got %q, %v", b.String(), err)
	}
}

// TestJoinersWhereLinesEnd: a joiner that is safe between two letters is not left alone where the second is cut off.
func TestJoinersWhereLinesEnd(t *testing.T) {
	t.Parallel()
	const word = "می\u200cخواهم"
	if got := output.Cut(word, 3); got != "می…" {
		t.Errorf("cut: %q", got)
	}
	if got := output.Cut("\x1b[1m"+word+"\x1b[0m", 3); got != "\x1b[1mمی…\x1b[0m" {
		t.Errorf("cut of a painted one: %q", got)
	}
	if head, rest := output.Head(word, 2); head != "می" || rest != "خواهم" {
		t.Errorf("head: %q and %q", head, rest)
	}
	if got := output.Unjoined("می\u200c\x1b[0m"); got != "می\x1b[0m" {
		t.Errorf("unjoined: %q", got)
	}
	if got := output.Cut(word, 7); got != word {
		t.Errorf("what fits is %q", got)
	}
}

// TestJoinersInFormats: the same rule holds for JSON and YAML, and the value stays what it is.
func TestJoinersInFormats(t *testing.T) {
	t.Parallel()
	value := map[string]string{"a": "می\u200cخواهم ad\u200dmin", "b": "می\u200cخواهم\nکتاب\u200cها", "c": "👩\u200d🚒\nb"}
	for format, want := range map[string]string{
		"json": "{\n  \"a\": \"می\u200cخواهم ad\\u200dmin\",\n  \"b\": \"می\u200cخواهم\\nکتاب\u200cها\",\n  \"c\": \"👩\\u200d🚒\\nb\"\n}\n",
		"yaml": "a: \"می\u200cخواهم ad\\u200dmin\"\nb: |-\n  می\u200cخواهم\n  کتاب\u200cها\nc: \"👩\\u200d🚒\\nb\"\n",
	} {
		got := printed(t, output.Printer{Format: format}, output.Result{Value: value})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", format, diff)
		}
		var back map[string]string
		if err := yaml.Unmarshal([]byte(got), &back); err != nil || cmp.Diff(value, back) != "" {
			t.Errorf("%s is read back as %q, %v", format, back, err)
		}
	}
}

func printed(t *testing.T, p output.Printer, r output.Result) string {
	t.Helper()
	var b bytes.Buffer
	p.W = &b
	if err := p.Print(r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestFormats(t *testing.T) {
	t.Parallel()
	table := output.NewTable("NAME", "READY", "+REVISION")
	style := output.Style{}
	table.Row("blog", style.State("True"), "abc")
	table.Row("日本語\x1b[2J", style.State("False"), "")
	r := output.Result{
		Value: map[string]any{"html": "<b>", "esc": "\u009b"},
		Table: table, Names: []string{"project/blog", "project/\x1b"},
	}
	for _, tc := range []struct {
		p    output.Printer
		want string
	}{
		{output.Printer{Format: "table"}, "NAME            READY\nblog            True\n日本語\\x1b[2J   False\n"},
		{output.Printer{Format: "wide", NoHeaders: true}, "blog            True    abc\n日本語\\x1b[2J   False\n"},
		{output.Printer{Format: "json"}, "{\n  \"esc\": \"\\u009b\",\n  \"html\": \"<b>\"\n}\n"},
		{output.Printer{Format: "yaml"}, "esc: \"\\u009b\"\nhtml: \"<b>\"\n"},
		{output.Printer{Format: "name"}, "project/blog\nproject/\\x1b\n"},
	} {
		if diff := cmp.Diff(tc.want, printed(t, tc.p, r)); diff != "" {
			t.Errorf("%s: %s", tc.p.Format, diff)
		}
	}
	if err := output.CheckFormat("xml"); err == nil {
		t.Error("an unknown format was accepted")
	}
	if err := output.CheckFormat("github", "github"); err != nil {
		t.Error(err)
	}
}

func TestColorIsOnlyPaint(t *testing.T) {
	t.Parallel()
	show := func(color bool) string {
		table := output.NewTable("NAME", "READY", "WHY")
		style := output.Style{Color: color}
		table.Row("a", style.State("True"), "x")
		table.Row("b", style.State("Unknown"), "y")
		return printed(t, output.Printer{Format: "table"}, output.Result{Table: table})
	}
	plain, colored := show(false), show(true)
	if strings.Contains(plain, "\x1b") || !strings.Contains(colored, "\x1b[32mTrue\x1b[0m") {
		t.Fatalf("plain %q, colored %q", plain, colored)
	}
	// What pads the last cell is taken away when it is painted, too: a terminal would break the line for it.
	last := output.NewTable("WHY", "READY")
	last.Row("x", output.Style{Color: true}.State("True"))
	last.Row("a longer text", output.Style{Color: true}.State("Unknown"))
	if got := printed(t, output.Printer{Format: "table", NoHeaders: true}, output.Result{Table: last}); got != "x               \x1b[32mTrue\x1b[0m\na longer text   \x1b[33mUnknown\x1b[0m\n" {
		t.Errorf("got %q", got)
	}
	for _, code := range []string{"31", "32", "33", "0"} {
		colored = strings.ReplaceAll(colored, "\x1b["+code+"m", "")
	}
	if diff := cmp.Diff(plain, colored); diff != "" {
		t.Fatal(diff)
	}
}

// What a state means is told by a tone, which a style paints.
func TestTones(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]output.Tone{
		"True": output.ToneGood, "Ready": output.ToneGood, "live": output.ToneGood, "succeeded": output.ToneGood, "closed": output.ToneGood,
		"False": output.ToneBad, "quarantined": output.ToneBad, "lost": output.ToneBad, "open": output.ToneBad,
		"Unknown": output.ToneWarn, "degraded": output.ToneWarn, "half-open": output.ToneWarn, "rebuilding": output.ToneWarn, "": output.ToneWarn,
	} {
		if got := output.ToneOf(state); got != want {
			t.Errorf("%s: got %v, want %v", state, got, want)
		}
	}
	for condition, want := range map[[2]string]output.Tone{
		{"Ready", "True"}: output.ToneGood, {"Ready", "False"}: output.ToneBad, {"Ready", "Unknown"}: output.ToneWarn,
		{"OutOfDate", "True"}: output.ToneWarn, {"OutOfDate", "False"}: output.ToneGood, {"OutOfDate", "Unknown"}: output.ToneWarn,
		{"Reconciling", "True"}: output.ToneWarn, {"Stalled", "True"}: output.ToneBad,
	} {
		if got := output.ToneOfCondition(condition[0], condition[1]); got != want {
			t.Errorf("%s: got %v, want %v", condition, got, want)
		}
	}
	style := output.Style{Color: true}
	for tone, want := range map[output.Tone]string{output.ToneGood: "\x1b[32mx\x1b[0m", output.ToneWarn: "\x1b[33mx\x1b[0m", output.ToneBad: "\x1b[31mx\x1b[0m"} {
		if got := style.Toned("x", tone); got.Paint(got.Text) != want {
			t.Errorf("%v: %q", tone, got.Paint(got.Text))
		}
	}
	if got := style.Toned("x", output.ToneNone); got.Paint != nil || got.Text != "x" {
		t.Errorf("without a tone it is painted: %+v", got)
	}
}

func TestYAMLKeepsOrderAndDigits(t *testing.T) {
	t.Parallel()
	in := `{"z":9223372036854775807,"a":{"list":[{"x":1,"y":[1,[2,3]]},[],{}],"empty":{}},"text":"two words","no":"yes","multi":"a\nb"}`
	want := `z: 9223372036854775807
a:
  list:
    - x: 1
      "y":
        - 1
        - - 2
          - 3
    - []
    - {}
  empty: {}
text: two words
"no": "yes"
multi: |-
  a
  b
`
	got := printed(t, output.Printer{Format: "yaml"}, output.Result{Value: json.RawMessage(in)})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	if got := printed(t, output.Printer{Format: "yaml"}, output.Result{Value: json.RawMessage(`[1,{"a":[{"b":2}]}]`)}); got != "- 1\n- a:\n    - b: 2\n" {
		t.Fatalf("got %q", got)
	}
	if err := (output.Printer{Format: "yaml"}).Print(output.Result{Value: json.RawMessage(`{"a":`)}); err == nil {
		t.Fatal("half a value was accepted")
	}
}

// Every JSON value comes back from its YAML as it was.
func FuzzYAML(f *testing.F) {
	for _, s := range []string{
		"yes", "123", "1e3", ".inf", "12:30:45", "2020-01-01", "0x1F", "~", "- a", "a: b", "a #b", " a ", "*a", "&a",
		"a\u2028b", "a\r\nb", "a\n b\n\n", "\x1b[0m", "null", "", "'", `"`, "\\", "a\tb", "@a", "`", "a-b", "1_000", "=", "<<",
		"one\ntwo", "one\ntwo\n", "one\n\ntwo\n\n\n", "# a\n  b\n---\n", "a: b\n- c", "a\n\n  b", "a \nb", " a\nb", "\na\nb", "a\n\tb", "\ta\nb", "...\n...", "%a\nb",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.ToValidUTF8(s, "?")
		value := map[string]any{"key": s, "list": []any{s, map[string]any{"k": s}}}
		var b bytes.Buffer
		if err := (output.Printer{W: &b}).YAML(value); err != nil {
			t.Fatal(err)
		}
		var back map[string]any
		if err := yaml.Unmarshal(b.Bytes(), &back); err != nil {
			t.Fatalf("%v in\n%s", err, b.String())
		}
		if diff := cmp.Diff(value, back); diff != "" {
			t.Fatalf("%s\n%s", diff, b.String())
		}
	})
}

// A bar stays on its line, whatever the name of what is told of.
func TestProgressKeepsToItsLine(t *testing.T) {
	t.Parallel()
	for width, want := range map[int]string{
		60: "getting… [######..................] 25% 250 B, 50 B/s, 15s…", 200: "getting blog-daily-20260301.tar.zst [######..................] 25% 250 B, 50 B/s, 15s left",
	} {
		var b bytes.Buffer
		clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		p := output.NewProgress(&b, true, func() time.Time { return clock }, "getting blog-daily-20260301.tar.zst", output.UnitBytes, 1000).Within(width)
		clock = clock.Add(5 * time.Second)
		p.SetBytes(250)
		if got := strings.TrimPrefix(b.String(), "\r\x1b[K"); got != want {
			t.Errorf("%d columns: got %q", width, got)
		}
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	run := func(bar bool) string {
		var b bytes.Buffer
		clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		p := output.NewProgress(&b, bar, func() time.Time { return clock }, "importing", "records", 1000)
		p.Add(10, 10) // too early to say anything
		clock = clock.Add(5 * time.Second)
		p.Add(90, 250)
		clock = clock.Add(time.Millisecond)
		p.Add(1, 260)
		p.Clear()
		p.Clear()
		return b.String()
	}
	var objects bytes.Buffer
	clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p := output.NewProgressLines(&objects, func() time.Time { return clock }, 1000)
	p.Add(10, 10)
	clock = clock.Add(time.Second)
	p.Add(90, 250)
	p.Clear()
	if diff := cmp.Diff(`{"event":"progress","done":100,"bytes":250,"totalBytes":1000}`+"\n", objects.String()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("importing 25% 100 records, 20/s, 15s left\n", run(false)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("\r\x1b[Kimporting [######..................] 25% 100 records, 20/s, 15s left\r\x1b[K", run(true)); diff != "" {
		t.Error(diff)
	}
}

func TestAge(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for ago, want := range map[time.Duration]string{
		-time.Hour: "0s", 119 * time.Second: "119s", 2 * time.Minute: "2m", 3 * time.Hour: "3h", 50 * time.Hour: "2d",
	} {
		if got := output.Age(now, now.Add(-ago)); got != want {
			t.Errorf("%s: got %s, want %s", ago, got, want)
		}
	}
	if got := output.Age(now, time.Time{}); got != "" {
		t.Errorf("got %q", got)
	}
}

// Fit cuts the last column alone, and leaves some of it however narrow the line is.
func TestFit(t *testing.T) {
	t.Parallel()
	for width, want := range map[int]int{200: 60, 50: 42, 10: 20} {
		table := output.NewTable("A", "MESSAGE")
		table.Row("äöüäö", strings.Repeat("é", 60))
		table.Row("b", "short")
		cut := table.Fit(width)
		var b bytes.Buffer
		if err := (output.Printer{W: &b, Format: output.FormatTable}).Print(output.Result{Table: table}); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(b.String(), "\n")
		message := []rune(strings.TrimPrefix(lines[1], "äöüäö   "))
		if len(message) != want || cut != (want < 60) || cut != (message[len(message)-1] == '…') || lines[2] != "b       short" {
			t.Errorf("%d: cut %v:\n%s", width, cut, b.String())
		}
	}
}

// Tables are measured in columns of the terminal: a character of Chinese and most emoji take two, an accent that is put on a letter none.
func TestWidths(t *testing.T) {
	t.Parallel()
	table := output.NewTable("NAME", "TITLE", "STATE")
	table.Row("日本", "e\u0301te\u0301", "ok")
	table.Row("abcd", "🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉", "ok")
	if !table.Shrink(40, 8) {
		t.Error("it does not fit")
	}
	var b bytes.Buffer
	if err := (output.Printer{W: &b, Format: output.FormatTable}).Print(output.Result{Table: table}); err != nil {
		t.Fatal(err)
	}
	const want = "NAME   TITLE                       STATE\n日本   e\u0301te\u0301                         ok\nabcd   🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉…   ok\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
	for line := range strings.Lines(b.String()) {
		if width := output.Width(strings.TrimSuffix(line, "\n")); width > 40 {
			t.Errorf("%q takes %d columns", line, width)
		}
	}
	for text, want := range map[string]string{"日本語": "日本語", "日本語語": "日本…", "abcdefg": "abcde…", "e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301": "e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301"} {
		if got := output.Cut(text, 6); got != want {
			t.Errorf("%q is cut to %q", text, got)
		}
	}
	for text, want := range map[string][2]string{"日本語": {"日", "本語"}, "ab": {"ab", ""}, "a日": {"a", "日"}} {
		if head, rest := output.Head(text, 2); head != want[0] || rest != want[1] {
			t.Errorf("%q begins with %q, then %q", text, head, rest)
		}
	}
	if head, _ := output.Head("日本", 1); head != "日" {
		t.Errorf("where there is no room it begins with %q", head)
	}
}

func TestReflow(t *testing.T) {
	t.Parallel()
	const text = "one two three four\nfive six\n\n  kept as\n  it is\n\nmuchlongerthanthat x"
	for width, want := range map[int]string{
		0:  text,
		10: "one two\nthree four\nfive six\n\n  kept as\n  it is\n\nmuchlongerthanthat\nx",
	} {
		if got := output.Reflow(text, width); got != want {
			t.Errorf("width %d: got %q", width, got)
		}
	}
}

func TestShrink(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		width, least int
		fits         bool
	}{
		{40, 4, true},
		{10, 4, false},
		{100, 4, true},
	} {
		table := output.NewTable("ID", "LONGEST", "OTHER")
		table.Row("an-id-that-stays", "a value of some length", "short")
		if fits := table.Shrink(tc.width, tc.least); fits != tc.fits {
			t.Errorf("%d: fits: %v", tc.width, fits)
		}
		var b bytes.Buffer
		if err := (output.Printer{W: &b, Format: output.FormatTable}).Print(output.Result{Table: table}); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(strings.TrimSpace(line)); tc.fits && n > tc.width {
				t.Errorf("%d: %d characters: %q", tc.width, n, line)
			}
		}
		if !strings.Contains(b.String(), "an-id-that-stays") || strings.Contains(b.String(), "…") != (tc.width < 100) {
			t.Errorf("%d: got %s", tc.width, b.String())
		}
	}
}

// Columns of -o wide, which nobody sees otherwise, take nothing from the others.
func TestShrinkPassesOverWideColumns(t *testing.T) {
	table := output.NewTable("NAME", "SCHEDULE", "+FILE")
	table.Row("cleanup", "0 3 * * *", strings.Repeat("f", 70))
	var plain, wide bytes.Buffer
	if !table.Shrink(30, 8) {
		t.Error("it fits, and is said not to")
	}
	for format, out := range map[string]*bytes.Buffer{output.FormatTable: &plain, output.FormatWide: &wide} {
		if err := (output.Printer{W: out, Format: format}).Print(output.Result{Table: table}); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(plain.String(), "cleanup   0 3 * * *\n") || !strings.Contains(wide.String(), strings.Repeat("f", 70)) {
		t.Errorf("%s%s", plain.String(), wide.String())
	}
}

func TestByteProgress(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p := output.NewProgress(&b, true, func() time.Time { return clock }, "getting a.jpg", output.UnitBytes, 4<<20)
	p.SetBytes(1000) // too early to say anything
	clock = clock.Add(2 * time.Second)
	p.SetBytes(1 << 20)
	p.Clear()
	if diff := cmp.Diff("\r\x1b[Kgetting a.jpg [######..................] 25% 1.0 MiB, 512.0 KiB/s, 6s left\r\x1b[K", b.String()); diff != "" {
		t.Error(diff)
	}
}

// What is no file is not replaced: neither a folder nor, for who may, a device.
func TestCreateFileReplacesFilesOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, link, os.DevNull} {
		f, err := output.CreateFile(path)
		if err == nil {
			f.Discard()
		}
		if err == nil || !strings.Contains(err.Error(), "- for stdout") {
			t.Errorf("%s: %v", path, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
}

// TestCreateFileOfLongName has any name that a folder takes be one of a file that is replaced.
func TestCreateFileOfLongName(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), strings.Repeat("n", 255))
	f, err := output.CreateFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Discard()
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

// TestNothingToShow: a section without rows has no heading, and a block that nothing was drawn in clears nothing.
func TestNothingToShow(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := (output.Printer{W: &b}).Section("Indexes", output.NewTable("NAME")); err != nil || b.Len() > 0 {
		t.Errorf("%v: %q", err, b.String())
	}
	if output.NewBlock(&b).Clear(); b.Len() > 0 {
		t.Errorf("a block without lines writes %q", b.String())
	}
}

// TestRowsAreEscaped: also what is no string, such as a risk that the service has given.
func TestRowsAreEscaped(t *testing.T) {
	t.Parallel()
	type word string
	var b bytes.Buffer
	table := output.NewTable("A", "B", "C")
	table.Row("\x1b[2J", word("\x1b[3J"), output.Painted{Text: "\x1b[4J"})
	if err := (output.Printer{W: &b}).Print(output.Result{Table: table}); err != nil || strings.Contains(b.String(), "\x1b") {
		t.Errorf("%v: %q", err, b.String())
	}
}

// TestUnjoined has joiners that join nothing, at ends and behind paint, which is no neighbor of theirs.
func TestUnjoined(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"plain":                                "plain",
		"می\u200cخواهم":                        "می\u200cخواهم",
		"می\u200c":                             "می",
		"\u200cمی":                             "می",
		"می\u200c…  م\u200d ":                  "می…  م ",
		"\x1b[7mمی\u200c\x1b[m\x1b[1mخ\x1b[m":  "\x1b[7mمی\u200c\x1b[m\x1b[1mخ\x1b[m",
		"\x1b[7mمی\x1b[m\x1b[1m\u200cخ\x1b[m":  "\x1b[7mمی\x1b[m\x1b[1m\u200cخ\x1b[m",
		"\x1b[7mمی\u200c\x1b[m\x1b[1m x\x1b[m": "\x1b[7mمی\x1b[m\x1b[1m x\x1b[m",
	} {
		if got := output.Unjoined(line); got != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
}
