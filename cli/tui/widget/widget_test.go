package widget_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/tui/widget"
)

// plain is the look without color, with marks that can be read.
func plain() widget.Theme { return widget.NewTheme(false, true) }

func TestMarked(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ text, want string }{
		{"", ""},
		{"plain", "plain"},
		{"a <mark>b</mark> c", "a [b] c"},
		{"<mark>a</mark><mark>b</mark>", "[a][b]"},
		{"a &lt;mark&gt;b&lt;/mark&gt; &amp; &#34;c&#34;", `a b & "c"`},
		{"&lt;p&gt;one&lt;/p&gt;\n&lt;p class=&#34;x&#34;&gt;two &amp;amp; <mark>three</mark>&lt;/p&gt;", "one two & [three]"},
		{"a&lt;br/&gt;b&lt;b&gt;c&lt;/b&gt;d&amp;nbsp;e", "a bcd e"},
		{"&lt;a href=&#34;/<mark>garden</mark>&#34;&gt;the <mark>garden</mark>&lt;/a&gt;", "the [garden]"},
		{"Map&lt;String&gt;, 1 &lt; 2 &amp;amp; 3 &gt; 2", "Map<String>, 1 < 2 &amp; 3 > 2"},
		{"&lt;script&gt;x&lt;/script&gt;", "<script>x</script>"},
		{"left <mark>open", "left [open]"},
		{"closed</mark> twice", "closed twice"},
		{"<mark>a<mark>b</mark>", "[ab]"},
		{"<b>not ours</b>", "not ours"},
		{"\x1b[31m<mark>\x1b]0;x\x07</mark>&#27;[2J\u202e", `\x1b[31m[\x1b]0;x\x07]\x1b[2J\u202e`},
		{"&lt;p&gt;  &lt;/p&gt;", ""},
		{"<mark></mark>", ""},
	} {
		got := widget.Marked(tc.text, plain())
		if text := strings.NewReplacer("\x1b[1;4m", "[", "\x1b[m", "]").Replace(got); text != tc.want {
			t.Errorf("%q: got %q, want %q", tc.text, text, tc.want)
		}
	}
}

func FuzzMarked(f *testing.F) {
	for _, text := range []string{"a <mark>b</mark>", "&lt;p&gt;<mark>x</mark>&lt;/p", "\x1b[1m&#27;", "<mark>&lt;a href=</mark>&gt;"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := strings.NewReplacer("\x1b[1;4m", "", "\x1b[m", "").Replace(widget.Marked(text, plain()))
		if output.Escape(got) != got {
			t.Errorf("%q gives %q", text, got)
		}
	})
}

func TestLines(t *testing.T) {
	t.Parallel()
	if got := widget.Bar(8, 3, 6) + widget.Bar(2, 9, 6) + widget.Bar(2, 1, 0) + widget.Percent(1, 3) + widget.Percent(7, 6) + widget.Percent(-1, 6); got != "████░░░░██░░33%100%0%" {
		t.Errorf("bars: %s", got)
	}
	for width, want := range map[int]string{0: "", 1: "…", 2: "a…", 3: "a b", 7: "a b", 8: "a b  c d", 10: "a b  c d", 11: "a b  c d  e"} {
		if got := widget.Fit([]string{"a b", "c d", "e"}, "  ", width); got != want {
			t.Errorf("%d columns: %q, want %q", width, got, want)
		}
	}
	if got := widget.Cut("日本語", 5); got != "日本…" {
		t.Errorf("cut: %q", got)
	}
	if got := widget.Pad("日本", 6, true) + "|" + widget.Pad("ab", 4, false) + "|"; got != "  日本|ab  |" {
		t.Errorf("padded: %q", got)
	}
	if diff := cmp.Diff([]string{"one two", "threefou", "r"}, widget.Wrap("one two threefour", 8)); diff != "" {
		t.Error(diff)
	}
}

func sections() []widget.Section {
	columns := []widget.Column{{Name: "NAME", Least: 6}, {Name: "N", Right: true, Rank: 1}, {Name: "EMPTY", Rank: 3}, {Name: "TEXT", Rank: 2, Least: 5}}
	row := func(id string, cells ...string) widget.Row {
		r := widget.Row{ID: id}
		for _, c := range cells {
			r.Cells = append(r.Cells, widget.Text(c))
		}
		return r
	}
	return []widget.Section{
		{Title: "Fruit", Columns: columns, Rows: []widget.Row{
			row("a", "apple", "1", "", "a red one"), row("p", "pomegranate", "12", "", "日本語 of many"), row("e", "evil\n\x1b[2J", "3", "", ""),
		}},
		{Title: "Nothing", None: "there is nothing", Columns: columns},
		{Title: "Trees", Columns: columns[:1], Rows: []widget.Row{row("o", "oak"), row("l", "lime")}},
	}
}

// drawn is what a terminal without color shows, without the blanks at the ends of lines.
func drawn(view string) string {
	var out []string
	for line := range strings.SplitSeq(ansi.Strip(view), "\n") {
		out = append(out, strings.TrimRight(line, " "))
	}
	return strings.Join(out, "\n")
}

func TestListInWidths(t *testing.T) {
	t.Parallel()
	const below = "\n\nTrees\n  NAME\n  oak\n  lime"
	for width, want := range map[int]string{
		60: "Fruit\n  NAME            N  TEXT\n▸ apple           1  a red one\n  pomegranate    12  日本語 of many\n  evil\\n\\x1b[2J   3\n\nNothing\n  there is nothing" + below,
		34: "Fruit\n  NAME            N  TEXT\n▸ apple           1  a red one\n  pomegranate    12  日本語 of ma…\n  evil\\n\\x1b[2J   3\n\nNothing\n  there is nothing" + below,
		24: "Fruit\n  NAME            N\n▸ apple           1\n  pomegranate    12\n  evil\\n\\x1b[2J   3\n\nNothing\n  there is nothing" + below,
		12: "Fruit\n  NAME\n▸ apple\n  pomegrana…\n  evil\\n\\x1…\n\nNothing\n  there is\n  nothing" + below,
		3:  "Fr…\n  …\n▸ …\n  …\n  …\n\nNo…\n  t\n  h\n  e\n  r\n  e\n  i\n  s\n  n\n  o\n  t\n  h\n  i\n  n\n  g\n\nTr…\n  …\n  …\n  …",
	} {
		var l widget.List
		l.Set(sections()...)
		if diff := cmp.Diff(want, drawn(l.View(width, 40, plain()))); diff != "" {
			t.Errorf("%d columns: %s", width, diff)
		}
	}
}

func TestListCursor(t *testing.T) {
	t.Parallel()
	var l widget.List
	if l.Key("down"); l.Selected() != "" || l.View(20, 5, plain()) != "" {
		t.Errorf("an empty list has %q", l.Selected())
	}
	l.Set(sections()...)
	l.View(40, 4, plain())
	for _, tc := range []struct{ key, want string }{
		{"down", "p"}, {"j", "e"}, {"down", "o"}, {"k", "e"}, {"up", "p"}, {"end", "l"}, {"down", "l"}, {"g", "a"}, {"up", "a"}, {"pgdown", "o"}, {"G", "l"}, {"pgup", "p"}, {"home", "a"},
	} {
		if !l.Key(tc.key) || l.Selected() != tc.want {
			t.Errorf("%s leads to %q, want %q", tc.key, l.Selected(), tc.want)
		}
	}
	if l.Key("x") {
		t.Error("x moves")
	}
	l.Select("o")
	l.Filter("OA")
	if got := drawn(l.View(40, 20, plain())); l.Selected() != "o" || got != "Fruit\n  nothing that the filter leaves\n\nNothing\n  there is nothing\n\nTrees\n  NAME\n▸ oak" {
		t.Errorf("filtered: %q at %q", got, l.Selected())
	}
	l.Filter("lim")
	if l.Selected() != "l" {
		t.Errorf("the cursor is on %q, which the filter has taken away", l.Selected())
	}
	l.Filter("")
	again := sections()
	again[2].Rows = again[2].Rows[:1] // without the row of the cursor
	l.Set(again...)
	if l.Selected() != "o" {
		t.Errorf("the cursor is on %q", l.Selected())
	}
	l.Set()
	if l.Selected() != "" {
		t.Errorf("the cursor is on %q of nothing", l.Selected())
	}
}

// The row with the cursor is seen in any height, and the headings of its section while there is room.
func TestListScrolls(t *testing.T) {
	t.Parallel()
	var many widget.Section
	many.Columns = []widget.Column{{Name: "NUMBER"}}
	for i := range 50 {
		id := strings.Repeat("i", i+1)
		many.Rows = append(many.Rows, widget.Row{ID: id, Cells: []widget.Cell{widget.Text(id)}})
	}
	for height := 1; height < 8; height++ {
		var l widget.List
		l.Set(many)
		for _, key := range []string{"", "down", "end", "up", "pgup", "pgup", "home", "pgdown", "pgdown", "k"} {
			l.Key(key)
			lines := strings.Split(drawn(l.View(80, height, plain())), "\n")
			at := -1
			for i, line := range lines {
				if line == "▸ "+l.Selected() {
					at = i
				}
			}
			if at < 0 || len(lines) > height {
				t.Errorf("%d lines, behind %s: %q", height, key, lines)
			}
			if height > 1 && lines[0] != "  NUMBER" {
				t.Errorf("%d lines, behind %s: no headings in %q", height, key, lines)
			}
		}
	}
}

// TestMarksAndSections: what is marked shows so, and the cursor goes from section to section.
func TestMarksAndSections(t *testing.T) {
	t.Parallel()
	rows := func(ids ...string) (out []widget.Row) {
		for _, id := range ids {
			out = append(out, widget.Row{ID: id, Cells: []widget.Cell{widget.Text(id)}})
		}
		return out
	}
	columns := []widget.Column{{Name: "NAME"}}
	var l widget.List
	l.Set(widget.Section{Title: "One", Columns: columns, Rows: rows("a", "b")}, widget.Section{Title: "None", None: "none"}, widget.Section{Title: "Two", Columns: columns, Rows: rows("c")})
	l.Mark("a", true)
	l.Mark("b", true)
	if diff := cmp.Diff("One\n  NAME\n▸●a\n ●b\n\nNone\n  none\n\nTwo\n  NAME\n  c", drawn(l.View(20, 20, plain()))); diff != "" {
		t.Error(diff)
	}
	l.Mark("b", false)
	for _, want := range []string{"c", "a", "c"} {
		l.SelectSection()
		if got := l.Selected(); got != want {
			t.Errorf("the cursor is on %s, want %s", got, want)
		}
	}
	if l.Left() != 0 || l.At() != 2 {
		t.Errorf("%d below place %d", l.Left(), l.At())
	}
	l.Home()
	l.Filter("c")
	if l.Selected() != "c" || l.At() != 0 {
		t.Errorf("the cursor is on %s", l.Selected())
	}
}

// TestOnlyWhatIsSeenIsDrawn: where the cursor is among many rows, there they are.
func TestOnlyWhatIsSeenIsDrawn(t *testing.T) {
	t.Parallel()
	var rows []widget.Row
	for i := range 10_000 {
		id := strconv.Itoa(i)
		rows = append(rows, widget.Row{ID: id, Cells: []widget.Cell{widget.Text(id)}})
	}
	var l widget.List
	l.Set(widget.Section{Columns: []widget.Column{{Name: "N"}}, Rows: rows})
	for _, move := range []struct{ key, want string }{
		{"", "  N\n▸ 0\n  1"}, {"end", "  N\n  9998\n▸ 9999"}, {"up", "  N\n▸ 9998\n  9999"}, {"pgup", "  N\n▸ 9996\n  9997"}, {"home", "  N\n▸ 0\n  1"},
	} {
		l.Key(move.key)
		if diff := cmp.Diff(move.want, drawn(l.View(20, 3, plain()))); diff != "" {
			t.Errorf("%s: %s", move.key, diff)
		}
	}
}

func TestMember(t *testing.T) {
	t.Parallel()
	theme := widget.NewTheme(true, true)
	for line, painted := range map[string]string{
		`  "a\"b": 1`: `"a\"b"`, "- name: x": "name", "key:": "key", "  - - deep: y": "deep", "a: b: c": "a",
	} {
		if got, want := widget.Member(line, theme), strings.Replace(line, painted, theme.Key.Render(painted), 1); got != want {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
	for _, line := range []string{`"text"`, "- text", "http://a", "", `"a", "b": 1`} {
		if got := widget.Member(line, theme); got != line {
			t.Errorf("%s: got %q", line, got)
		}
	}
	if got := widget.Member("a\x1b[2J: 1", theme); strings.Contains(got, "\x1b[2J") {
		t.Errorf("the terminal is told something: %q", got)
	}
}

func TestPager(t *testing.T) {
	t.Parallel()
	var d widget.Doc
	d.Heading("One\x1b")
	d.Field("Name", "a value that is longer than the line")
	d.Field("Nothing", "")
	d.State("State\x1b", "bad\x1b", output.ToneBad)
	d.Heading("Two")
	d.Text("a\nb\x1b")
	d.Painted("\x1b[1mpainted\x1b[m")
	var p widget.Pager
	const all = "One\\x1b\nName       a value\n           that is\n           longer than\n           the line\nState\\x1b  bad\\x1b\n\nTwo\na\nb\\x1b\npainted"
	if diff := cmp.Diff(all, drawn(p.View(d, 22, 12, plain()))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("One\\x1b\nName       a value\n           that is\n— more below", drawn(p.View(d, 22, 4, plain()))); diff != "" {
		t.Error(diff)
	}
	p.Key("end")
	if diff := cmp.Diff("a\nb\\x1b\npainted\n— the end", drawn(p.View(d, 22, 4, plain()))); diff != "" {
		t.Error(diff)
	}
	p.Key("up")
	p.Key("pgup")
	if diff := cmp.Diff("State\\x1b  bad\\x1b\n\nTwo\n— more below", drawn(p.View(d, 22, 4, plain()))); diff != "" {
		t.Error(diff)
	}
}

func TestBlocks(t *testing.T) {
	t.Parallel()
	var b widget.Blocks
	if b.Key("down"); b.Selected() != -1 || b.View(20, 4, plain()) != "" {
		t.Errorf("%d of nothing", b.Selected())
	}
	var blocks []widget.Block
	for _, name := range []string{"one", "two", "three", "four"} {
		blocks = append(blocks, widget.Block{Lines: []string{name, "about " + name, "more about " + name}})
	}
	b.Set(blocks)
	for _, tc := range []struct {
		key, want string
		at        int
	}{
		{"", "▸ one\n  about one\n  more abou…\n  two", 0},
		{"down", "  more abou…\n▸ two\n  about two\n  more abou…", 1},
		{"end", "  more abou…\n▸ four\n  about four\n  more abou…", 3},
		{"down", "  more abou…\n▸ four\n  about four\n  more abou…", 3},
		{"up", "▸ three\n  about thr…\n  more abou…\n  four", 2},
		{"pgup", "▸ two\n  about two\n  more abou…\n  three", 1},
	} {
		b.Key(tc.key)
		if diff := cmp.Diff(tc.want, drawn(b.View(12, 4, plain()))); diff != "" || b.Selected() != tc.at {
			t.Errorf("%s leads to %d: %s", tc.key, b.Selected(), diff)
		}
	}
}

// TestJoinersAtBreaks: a joiner of Persian that a word is broken behind is not left alone.
func TestJoinersAtBreaks(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"می\u200cخواهم", "\x1b[1mمی\u200cخواهم\x1b[m"} {
		var got []string
		for _, part := range widget.Wrap(line, 2) {
			got = append(got, ansi.Strip(part))
		}
		if diff := cmp.Diff([]string{"می", "خو", "اه", "م"}, got); diff != "" {
			t.Errorf("%q: %s", line, diff)
		}
	}
}
