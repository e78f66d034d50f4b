// Command samples writes the content of the sample projects: a few hundred believable records as NDJSON files, the same
// ones each time. make run loads them through the API, in the order of their names; what follows the number in a name is
// the collection.
//
//	go run ./scripts/samples projects
//
// blog.go and shop.go make the records, words.go has what they are made of, blogpictures.go and shoppictures.go draw their
// pictures. The dates lead up to a fixed day in the
// past, so that the publication window shows; a few articles wait for a day that is far off.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: samples PROJECTS-DIRECTORY")
		os.Exit(2)
	}
	for name, records := range files(encodePicture) {
		path := filepath.Join(os.Args[1], filepath.FromSlash(name))
		if err := write(path, records); err != nil {
			fmt.Fprintln(os.Stderr, "samples:", err)
			os.Exit(1)
		}
	}
}

// files gives every file below the projects directory with its records. encode makes the files of pictures.
func files(encode encoder) map[string][]any {
	out := map[string][]any{
		"blog/content/00-medialib.ndjson": medialib(blogPictures(), encode),
		"shop/content/00-medialib.ndjson": medialib(shopPictures(), encode),
	}
	for name, records := range blog(newSource(1)) {
		out["blog/content/"+name] = records
	}
	for name, records := range shop(newSource(2)) {
		out["shop/content/"+name] = records
	}
	return out
}

func write(path string, records []any) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	data, err := encode(records)
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

// encode writes one JSON object a line.
func encode(records []any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for _, r := range records {
		if err := enc.Encode(r); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// source is what choices are drawn from; the same seed gives the same ones.
type source struct{ *rand.Rand }

func newSource(seed uint64) source {
	return source{rand.New(rand.NewPCG(seed, 0x5eed))}
}

func (s source) pick(list []string) string { return list[s.IntN(len(list))] }

// some draws n different elements.
func (s source) some(list []string, n int) []string {
	out := make([]string, 0, n)
	for _, i := range s.Perm(len(list))[:min(n, len(list))] {
		out = append(out, list[i])
	}
	return out
}

// chance is true in n of 100 cases.
func (s source) chance(n int) bool { return s.IntN(100) < n }

// lastDay is when the samples were "made": the newest published article and the newest order are of this day.
func lastDay() time.Time { return time.Date(2026, time.June, 30, 0, 0, 0, 0, time.UTC) }

// stamp writes a moment as the service does.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
