package engine

import (
	"context"
	"maps"
	"math"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/fieldtype"
	"github.com/svcctl/svc/pkg/search"
	"github.com/svcctl/svc/pkg/search/index"
)

// What becomes of a record in an index of mode vector: its texts are taken from it (bound.embeds), and the vectors that are kept of them
// go into the index with it. What has none yet goes in without, and waits (standing.go): the embedder of its reference asks the
// group for vectors, if the instance has the lease, or else looks whether another has kept them, and has the records be indexed
// once more (embedder.go). No write of a record waits for that.

// embedded is the text of a record that becomes one vector: that of all fields, in the language of the records or in another.
type embedded struct {
	field index.Field
	lang  string   // "": the fields themselves
	paths []string // what it is made of
}

// embedsOf gives what is embedded of records.
func embedsOf(c *search.Config) (out []embedded) {
	own := embedded{}
	for _, f := range c.Fields {
		own.paths = append(own.paths, f.Path)
	}
	out = append(out, own)
	for _, f := range c.Fields {
		for _, lang := range f.Translations {
			i := slices.IndexFunc(out, func(e embedded) bool { return e.lang == lang })
			if i < 0 {
				i = len(out)
				out = append(out, embedded{index.Field(i), lang, slices.Clone(own.paths)}) //nolint:gosec // configs are bounded
			}
			out[i].paths = append(out[i].paths, fieldtype.I18n+"."+lang+"."+f.Path)
		}
	}
	return out
}

// visible says whether a caller may see all that is embedded: a vector can't be taken apart.
func (e embedded) visible(hidden *document.PathSet) bool {
	return !slices.ContainsFunc(e.paths, hidden.Reaches)
}

// near gives what a caller looks into, the best first: what is embedded in their language, and where a record has nothing in that, its
// own.
func (b *bound) near(lang string, hidden *document.PathSet) (out []index.Field) {
	for _, e := range b.embeds {
		if (e.lang == "" || e.lang == lang) && e.visible(hidden) {
			out = append(out, e.field)
		}
	}
	if len(out) == 0 || out[0] != b.embeds[0].field { // a translation stands for the fields themselves where there is none
		return nil
	}
	slices.Reverse(out)
	return out
}

// embedTexts gives what is embedded of a record: texts that say something.
func (b *bound) embedTexts(doc bson.Raw, said saying) map[index.Field]string {
	out := map[index.Field]string{}
	if b.script != nil {
		for _, e := range b.embeds {
			text := strings.TrimSpace(strings.Join(said.texts[e.lang], "\n"))
			if text != "" && text != out[b.embeds[0].field] { // which stands for what has none of its own
				out[e.field] = text
			}
		}
		return out
	}
	for _, e := range b.embeds {
		if e.lang != "" {
			if _, err := doc.LookupErr(fieldtype.I18n, e.lang); err != nil {
				continue
			}
		}
		var parts []string
		for _, f := range b.Fields {
			texts(doc, f.Path, e.lang, func(text string) { parts = append(parts, text) })
		}
		if text := strings.TrimSpace(strings.Join(parts, "\n")); text != "" {
			out[e.field] = text
		}
	}
	return out
}

// vectorsFor gives what is known of the texts of records that are found by an index.
func (b *built) vectorsFor(ctx context.Context, how *bound, docs map[bson.ObjectID]bson.Raw, said map[bson.ObjectID]saying) (map[vectorKey]known, error) {
	if how.Mode != search.Vector {
		return nil, nil
	}
	var keys []vectorKey
	for id, doc := range docs {
		if how.Filter.Match(doc) {
			for _, text := range how.embedTexts(doc, said[id]) {
				keys = append(keys, newVectorKey(b.state.Form.Reference, text))
			}
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	kept, err := b.s.t.vectorsOf(ctx, keys)
	if g, groupErr := b.group(); err == nil && groupErr == nil && g.Dimensions() > 0 {
		maps.DeleteFunc(kept, func(_ vectorKey, one known) bool { // of a model that was replaced behind its name
			return one.vector.Dense != nil && len(one.vector.Dense) != g.Dimensions()
		})
	}
	return kept, err
}

// embed adds the vectors of a record to what becomes of it.
func (b *built) embed(c *index.Change, how *bound, doc bson.Raw, said saying, kept map[vectorKey]known) {
	standing := ""
	c.Fields, c.Vectors = map[index.Field][]index.Token{}, map[index.Field][]float32{}
	for field, text := range how.embedTexts(doc, said) {
		switch one, ok := kept[newVectorKey(b.state.Form.Reference, text)]; {
		case !ok:
			standing = waitingTerm
		case one.refused && standing == "":
			standing = refusedTerm
		case one.refused:
		case one.vector.Sparse != nil:
			c.Fields[field] = index.Weights(ofLengthOne(one.vector.Sparse))
		default:
			c.Vectors[field] = one.vector.Dense
		}
	}
	if standing != "" {
		c.Fields[standingField] = []index.Token{{Term: standing}}
	}
}

// ofLengthOne gives a sparse vector of length 1, so that products with another such are cosines.
func ofLengthOne(v map[string]float32) map[string]float32 {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	out := make(map[string]float32, len(v))
	for token, x := range v {
		out[token] = float32(float64(x) / math.Sqrt(sum))
	}
	return out
}
