package doc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/cli/command/commandtest"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// taker is a service that takes batches of so many records at most, and refuses records that say so.
type taker struct {
	most int
	fail error // of a batch that has a record with "fail"
	sent []string
}

func (s *taker) send(_ context.Context, first int, batch []item) ([]outcome, error) {
	s.sent = append(s.sent, fmt.Sprintf("%d+%d", first, len(batch)))
	if s.most > 0 && len(batch) > s.most {
		return nil, &client.Error{Status: 413}
	}
	out := make([]outcome, len(batch))
	for i, it := range batch {
		switch text := string(it.record); {
		case strings.Contains(text, "fail"):
			return nil, s.fail
		case strings.Contains(text, "bad"):
			out[i].problem = &api.Problem{Code: "invalid", Detail: "it is bad"}
		case strings.Contains(text, "old"):
			out[i].updated = true
		}
	}
	return out, nil
}

// imported imports lines, and gives what is printed on stderr, too.
func imported(t *testing.T, opts *importOptions, to sender, input string) (*importer, string, error) {
	t.Helper()
	st := commandtest.State(t)
	var notes bytes.Buffer
	st.Err = &notes
	opts.st, opts.place, opts.File = st, place{"blog", "articles"}, "a.ndjson"
	state, resumed, err := openImportState(opts, "http://s")
	if err != nil {
		t.Fatal(err)
	}
	im := &importer{
		opts: opts, input: &countingReader{r: strings.NewReader(input)}, next: 1, sender: to, state: state,
		progress: output.NewProgress(io.Discard, false, st.Now, "", "", 0),
	}
	if err := im.openErrors(resumed); err != nil {
		t.Fatal(err)
	}
	err = im.run(t.Context())
	if closed := im.closeErrors(); closed != nil {
		t.Error(closed)
	}
	return im, notes.String(), err
}

// lines are records, one a line, of these kinds.
func lines(kinds ...string) string {
	var b strings.Builder
	for i, kind := range kinds {
		fmt.Fprintf(&b, "{\"n\":%d,\"kind\":%q}\n", i+1, kind)
	}
	return b.String()
}

func TestImporter(t *testing.T) {
	t.Parallel()
	refused := func(status int, code string) error {
		return &client.Error{Status: status, Problem: api.Problem{Code: code, Detail: "refused"}}
	}
	type counts struct{ Created, Updated, Failed, Next int }
	for name, tc := range map[string]struct {
		opts  importOptions
		to    taker
		input string
		sent  string
		want  counts
		err   string
	}{
		"batches, and the rest":       {importOptions{Batch: 2}, taker{}, lines("", "old", "", "", "old"), "1+2 3+2 5+1", counts{3, 2, 0, 6}, ""},
		"nothing":                     {importOptions{Batch: 2}, taker{}, "", "", counts{0, 0, 0, 1}, ""},
		"behind what is passed over":  {importOptions{Batch: 2, Skip: 3}, taker{}, lines("", "", "", "", ""), "4+2", counts{2, 0, 0, 6}, ""},
		"less than is passed over":    {importOptions{Batch: 2, Skip: 3}, taker{}, lines("", ""), "", counts{0, 0, 0, 3}, ""},
		"stops behind the batch":      {importOptions{Batch: 2}, taker{}, lines("", "bad", "", ""), "1+2", counts{1, 0, 1, 3}, "records were refused"},
		"goes on":                     {importOptions{Batch: 2, ContinueOnError: true}, taker{}, lines("", "bad", "", ""), "1+2 3+2", counts{3, 0, 1, 5}, ""},
		"goes on for a trial":         {importOptions{Batch: 2, DryRun: true}, taker{}, lines("bad", "bad", ""), "1+2 3+1", counts{1, 0, 2, 4}, ""},
		"halves, and stays with them": {importOptions{Batch: 4}, taker{most: 2}, lines("", "", "", "", "", ""), "1+4 1+2 3+2 5+2", counts{6, 0, 0, 7}, ""},
		"halves down to one":          {importOptions{Batch: 3}, taker{most: 1}, lines("", "", ""), "1+3 1+1 2+2 2+1 3+1", counts{3, 0, 0, 4}, ""},
		"one that is too long": {
			importOptions{Batch: 1, ContinueOnError: true}, taker{fail: refused(413, "too_large")}, lines("fail", ""), "1+1 2+1", counts{1, 0, 1, 3}, "",
		},
		"a limit of the collection": {
			importOptions{Batch: 2, ContinueOnError: true}, taker{fail: refused(400, "bulk_limit")}, lines("fail", ""), "1+2 1+1 2+1", counts{1, 0, 1, 3}, "",
		},
		"refused whole": {importOptions{Batch: 2, ContinueOnError: true}, taker{fail: refused(422, "no")}, lines("fail", "", ""), "1+2 3+1", counts{1, 0, 2, 4}, ""},
		"a conflict":    {importOptions{Batch: 1, ContinueOnError: true}, taker{fail: refused(409, "no")}, lines("fail", ""), "1+1 2+1", counts{1, 0, 1, 3}, ""},
		"no right":      {importOptions{Batch: 1, ContinueOnError: true}, taker{fail: refused(403, "no")}, lines("", "fail", ""), "1+1 2+1", counts{1, 0, 0, 2}, "refused"},
		"no answer": {
			importOptions{Batch: 1, ContinueOnError: true}, taker{fail: &client.UnreachableError{Server: "s", Err: errors.New("gone")}}, lines("fail"), "1+1", counts{0, 0, 0, 1}, "gone",
		},
		"what is before bad input is sent": {importOptions{Batch: 9}, taker{}, lines("", "") + "[1", "1+2", counts{2, 0, 0, 3}, "a.ndjson"},
		"a record that is none":            {importOptions{Batch: 9}, taker{}, lines("") + "7\n", "", counts{0, 0, 0, 1}, "record 2"},
	} {
		im, _, err := imported(t, &tc.opts, &tc.to, tc.input)
		r := im.state.Result
		if diff := cmp.Diff(tc.want, counts{r.Created, r.Updated, r.Failed, im.next}); diff != "" || r.Succeeded != r.Created+r.Updated {
			t.Errorf("%s: %d succeeded, %s", name, r.Succeeded, diff)
		}
		if got := strings.Join(tc.to.sent, " "); got != tc.sent {
			t.Errorf("%s: it sends %s, want %s", name, got, tc.sent)
		}
		if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestImportOfLongRecords: a request has no more bytes than it may, unless one record has.
func TestImportOfLongRecords(t *testing.T) {
	t.Parallel()
	long := func(size int) string { return `{"text":"` + strings.Repeat("x", size) + `"}` + "\n" }
	to := &taker{}
	_, _, err := imported(t, &importOptions{Batch: 9}, to, long(maxBatchBytes/2)+long(maxBatchBytes/4)+long(maxBatchBytes/2)+long(maxBatchBytes+1)+long(1)+long(1))
	if got := strings.Join(to.sent, " "); err != nil || got != "1+2 3+1 4+1 5+2" {
		t.Errorf("it sends %s, %v", got, err)
	}
}

// TestRefusedRecords: the first ones are told one by one, all are counted, and all are in the file of --errors.
func TestRefusedRecords(t *testing.T) {
	t.Parallel()
	bad := make([]string, shownFailures+3)
	for i := range bad {
		bad[i] = "bad"
	}
	for name, tc := range map[string]struct {
		opts importOptions
		told int // one by one, and in the result
		more int // lines that say that there are others
	}{
		"an import": {importOptions{Batch: 1, ContinueOnError: true}, shownFailures, 1},
		"a trial":   {importOptions{Batch: 1, DryRun: true}, len(bad), 0},
	} {
		file := filepath.Join(t.TempDir(), "refused")
		tc.opts.Errors = file
		im, notes, err := imported(t, &tc.opts, &taker{}, lines(bad...))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(notes, ": it is bad\n"); got != tc.told {
			t.Errorf("%s: %d are told: %s", name, got, notes)
		}
		if got := strings.Count(notes, "more records were refused; they are counted, but not shown"); got != tc.more {
			t.Errorf("%s: it tells of more %d times: %s", name, got, notes)
		}
		if r := im.state.Result; r.Failed != len(bad) || len(r.Failures) != tc.told || r.Failures[1].Record != 2 || r.Failures[1].Through != 0 {
			t.Errorf("%s: %d failed, told %+v", name, r.Failed, r.Failures)
		}
		text, err := os.ReadFile(file)
		if err != nil || strings.Count(string(text), "\n") != len(bad) || !strings.Contains(string(text), `{"record":23,"code":"invalid","message":"it is bad","item":{"n":23,"kind":"bad"}}`) {
			t.Errorf("%s: %s, %v", name, text, err)
		}
	}
	// A batch that is refused whole is one failure, and each of its records is in the file.
	file := filepath.Join(t.TempDir(), "refused")
	whole := &taker{fail: &client.Error{Status: 400, Problem: api.Problem{Code: "invalid", Detail: "no"}}}
	im, notes, err := imported(t, &importOptions{Batch: 3, Errors: file}, whole, lines("", "fail", ""))
	if f := im.state.Result.Failures; err != nil || len(f) != 1 || f[0].Record != 1 || f[0].Through != 3 || !strings.Contains(notes, "records 1 to 3: no") {
		t.Errorf("%v: %+v, %s", err, f, notes)
	}
	text, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(text), "through") || !strings.Contains(string(text), `{"record":3,`) || strings.Count(string(text), "\n") != 3 {
		t.Errorf("%s, %v", text, err)
	}
	// A file that stays empty goes, also where it was there.
	if _, notes, err := imported(t, &importOptions{Batch: 3, Errors: file}, &taker{}, lines("")); err != nil || strings.Contains(notes, "what was refused") {
		t.Errorf("%v: %s", err, notes)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file without a refusal is there: %v", err)
	}
}

// TestImportGoesOn: what is through is passed over, if the file is the same, and the file of refused records goes on behind the last batch.
func TestImportGoesOn(t *testing.T) {
	t.Parallel()
	all := []string{"bad", "", "", "fail", ""}
	for name, tc := range map[string]struct {
		input, sent, err string
	}{
		"the same file":     {lines(all[0], all[1], all[2], "", ""), "3+2 5+1", ""},
		"another file":      {lines("", all[1], all[2], "", ""), "", "the first 2 records of a.ndjson are not what they were"},
		"one that is short": {lines(all[0]), "", "the first 2 records of a.ndjson are not what they were"},
	} {
		dir := t.TempDir()
		opts := func() *importOptions {
			return &importOptions{Batch: 2, State: filepath.Join(dir, "state"), Errors: filepath.Join(dir, "refused")}
		}
		gone := &taker{fail: &client.UnreachableError{Server: "s", Err: errors.New("gone")}}
		if _, _, err := imported(t, opts(), gone, lines(all...)); err == nil || !strings.Contains(err.Error(), "gone") {
			t.Fatalf("%s: %v", name, err)
		}
		file, err := os.OpenFile(filepath.Join(dir, "refused"), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteString("of a batch that is not through\n"); err != nil {
			t.Fatal(err)
		}
		_ = file.Close()
		to := &taker{}
		im, _, err := imported(t, opts(), to, tc.input)
		if got := strings.Join(to.sent, " "); got != tc.sent || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: it sends %s, %v", name, got, err)
		}
		if im.stale != (tc.err != "") {
			t.Errorf("%s: it is stale: %v", name, im.stale)
		}
		if tc.err == "" {
			text, err := os.ReadFile(filepath.Join(dir, "refused"))
			if err != nil || strings.Count(string(text), "\n") != 1 || im.state.Result.Created != 4 || im.state.Result.Failed != 1 {
				t.Errorf("%s: %s, %v, %+v", name, text, err, im.state.Result)
			}
		}
	}
}
