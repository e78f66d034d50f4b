package quality

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Document is one abstract of the collection, as it is there: the text begins with the title.
type Document struct{ ID, Title, Text string }

// Cranfield reads the Cranfield collection from a folder with cran.all.1400, cran.qry and cranqrel. Queries are numbered by
// their order in the file; every document that is listed for one is relevant.
func Cranfield(dir string) ([]Document, []Judged, error) {
	all, err := sections(filepath.Join(dir, "cran.all.1400"))
	if err != nil {
		return nil, nil, err
	}
	docs := make([]Document, len(all))
	for i, s := range all {
		docs[i] = Document{ID: s["I"], Title: strings.TrimSpace(s["T"]), Text: strings.TrimSpace(s["W"])}
	}
	if all, err = sections(filepath.Join(dir, "cran.qry")); err != nil {
		return nil, nil, err
	}
	queries := make([]Judged, len(all))
	for i, s := range all {
		queries[i] = Judged{Query: s["W"], Relevant: map[string]int{}}
	}
	text, err := os.ReadFile(filepath.Join(dir, "cranqrel")) //nolint:gosec // the folder is given by who measures
	if err != nil {
		return nil, nil, fmt.Errorf("read judgements: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) < 2 {
			continue
		}
		n, err := strconv.Atoi(words[0])
		if err != nil || n < 1 || n > len(queries) {
			return nil, nil, fmt.Errorf("judgements: there is no query %q", words[0])
		}
		queries[n-1].Relevant[words[1]] = 1
	}
	return docs, queries, nil
}

// sections reads a file of entries that begin with .I and a number, and have members that begin with a dot and a letter.
func sections(path string) ([]map[string]string, error) {
	text, err := os.ReadFile(path) //nolint:gosec // likewise
	if err != nil {
		return nil, fmt.Errorf("read the collection: %w", err)
	}
	var out []map[string]string
	member := ""
	for line := range strings.Lines(string(text)) {
		if number, ok := strings.CutPrefix(line, ".I "); ok {
			out = append(out, map[string]string{"I": strings.TrimSpace(number)})
			continue
		}
		if len(strings.TrimSpace(line)) == 2 && line[0] == '.' {
			member = line[1:2]
			continue
		}
		if len(out) > 0 {
			out[len(out)-1][member] += line
		}
	}
	return out, nil
}
