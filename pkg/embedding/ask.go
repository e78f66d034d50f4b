package embedding

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"github.com/svcctl/svc/pkg/errs"
)

const (
	// BatchSize is how many texts one call has at most: what every server takes.
	BatchSize = 32

	// maxText is how much of a text is embedded, in bytes. Models read less.
	maxText = 32 << 10
)

// Query gives the vector of what is looked for.
func (g *Group) Query(ctx context.Context, text string) (Vector, error) {
	if strings.TrimSpace(text) == "" {
		return Vector{}, errs.New(errs.Invalid, "embedding_no_text", "there is no text to look for")
	}
	members, err := g.usable(ctx)
	if err != nil {
		return Vector{}, err
	}
	texts := []string{clip(text)}
	if g.config.OnSingleQuery == Race && len(members) > 1 {
		return g.race(ctx, members, texts)
	}
	vectors, err := g.inTurn(ctx, members, texts, Query)
	if err != nil {
		return Vector{}, err
	}
	return vectors[0], nil
}

// Documents gives the vectors of what can be found, in the order of the texts. A text of white space has none: the zero
// Vector. Either all texts succeed or none does; an error of the kind errs.Invalid means that one of them is refused.
func (g *Group) Documents(ctx context.Context, texts []string) ([]Vector, error) {
	out := make([]Vector, len(texts))
	var at []int // of texts that say something
	for i, text := range texts {
		if strings.TrimSpace(text) != "" {
			at = append(at, i)
		}
	}
	if len(at) == 0 {
		return out, nil
	}
	members, err := g.usable(ctx)
	if err != nil {
		return nil, err
	}
	batches, inner := errgroup.WithContext(ctx)
	batches.SetLimit(1)
	if g.config.OnBulkWrite == Spread {
		batches.SetLimit(len(members))
	}
	for len(at) > 0 && inner.Err() == nil {
		batch := at[:min(len(at), BatchSize)]
		at = at[len(batch):]
		order := members
		if g.config.OnBulkWrite == Spread {
			n := int(g.turn.Add(1) % uint64(len(members))) //nolint:gosec // less than len
			order = append(append([]*member{}, members[n:]...), members[:n]...)
		}
		batches.Go(func() error { return g.batch(inner, order, texts, batch, out) })
	}
	if err := batches.Wait(); err != nil {
		return nil, err
	}
	if len(at) > 0 { // the caller's time was over between two batches
		return nil, g.gaveUp(ctx, nil)
	}
	return out, nil
}

// Probe asks for the vector of a text that any model takes, to tell a text that is refused from a provider that refuses whatever it is
// asked. Where that is refused, too, the error has the code CodeRefused.
func (g *Group) Probe(ctx context.Context) error {
	_, err := g.Documents(ctx, []string{g.proof.probe})
	if err != nil && codeOf(err) == CodeRefused {
		return errs.New(errs.Unavailable, CodeRefused, "the embedding group %s refuses every text; embedding status says why", g.config.Name).With(err)
	}
	return err
}

// batch writes the vectors of some texts into out.
func (g *Group) batch(ctx context.Context, members []*member, texts []string, at []int, out []Vector) error {
	part := make([]string, len(at))
	for i, j := range at {
		part[i] = clip(texts[j])
	}
	vectors, err := g.inTurn(ctx, members, part, Document)
	if err != nil {
		return err
	}
	for i, j := range at {
		out[j] = vectors[i]
	}
	return nil
}

// inTurn asks one member after the other until one answers.
func (g *Group) inTurn(ctx context.Context, members []*member, texts []string, kind Kind) ([]Vector, error) {
	var all error
	for _, m := range members {
		if m.State() != Live { // since it was chosen
			continue
		}
		vectors, err := m.call(ctx, m.prefixed(texts, kind), kind)
		if err == nil {
			return vectors, nil
		}
		if ctx.Err() != nil {
			return nil, g.gaveUp(ctx, err)
		}
		all = errors.Join(all, err)
		if codeOf(err) == CodeRefused { // another member of the same model would refuse it, too
			return nil, errs.New(errs.Invalid, CodeRefused, "the embedding group %s refuses a text", g.config.Name).With(err)
		}
	}
	return nil, g.offline(all)
}

// race asks all at once; the first answer ends the other calls.
func (g *Group) race(ctx context.Context, members []*member, texts []string) (Vector, error) {
	inner, cancel := context.WithCancel(ctx)
	var (
		all   sync.WaitGroup
		mu    sync.Mutex
		first *Vector
		lost  error
	)
	for _, m := range members {
		all.Go(func() {
			vectors, err := m.call(inner, m.prefixed(texts, Query), Query)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case first != nil:
			case err == nil:
				first = &vectors[0]
				cancel()
			default:
				lost = errors.Join(lost, err)
			}
		})
	}
	all.Wait()
	cancel()
	switch {
	case first != nil:
		return *first, nil
	case ctx.Err() != nil:
		return Vector{}, g.gaveUp(ctx, lost)
	case codeOf(lost) == CodeRefused:
		return Vector{}, errs.New(errs.Invalid, CodeRefused, "the embedding group %s refuses the text", g.config.Name).With(lost)
	}
	return Vector{}, g.offline(lost)
}

// gaveUp is the error of a call whose caller's time was over.
func (g *Group) gaveUp(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return errs.New(errs.Timeout, CodeTimeout, "the embedding group %s did not answer in time", g.config.Name).With(errors.Join(context.Cause(ctx), err))
	}
	return errors.Join(context.Cause(ctx), err)
}

func (m *member) prefixed(texts []string, kind Kind) []string {
	prefix := m.config.DocumentPrefix
	if kind == Query {
		prefix = m.config.QueryPrefix
	}
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = prefix + text
	}
	return out
}

// clip ends a text at a character's end within the limit.
func clip(text string) string {
	if len(text) <= maxText {
		return strings.ToValidUTF8(text, "�")
	}
	end := maxText
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return strings.ToValidUTF8(text[:end], "�")
}

// ticker is a time.Ticker that never ticks when its interval is 0.
type ticker struct {
	c    <-chan time.Time
	stop func()
}

func newTicker(interval time.Duration) ticker {
	if interval <= 0 {
		return ticker{stop: func() {}}
	}
	t := time.NewTicker(interval)
	return ticker{c: t.C, stop: t.Stop}
}

// Golden gives a golden file of the vectors that the group gives now, for goldenPath/<group>.json: what its members will
// have to give from then on. Texts are embedded as documents, queries as queries.
func (g *Group) Golden(ctx context.Context, texts, queries []string) ([]byte, error) {
	vectors, err := g.Documents(ctx, texts)
	if err != nil {
		return nil, err
	}
	out := make([]goldenText, 0, len(texts)+len(queries))
	for i, text := range texts {
		if vectors[i].IsZero() {
			return nil, errs.New(errs.Invalid, "embedding_no_text", "a golden text has to say something")
		}
		out = append(out, goldenText{Text: text, vector: vectors[i]})
	}
	for _, text := range queries {
		v, err := g.Query(ctx, text)
		if err != nil {
			return nil, err
		}
		out = append(out, goldenText{Text: text, Kind: Query.String(), vector: v})
	}
	return encodeGolden(out)
}
