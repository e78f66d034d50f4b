package doc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// creator creates each item.
type creator struct {
	client *client.Client
	place  place
	retry  *retrier
	single bool // one by one, which needs no right to bulk requests
	dryRun bool // nothing is written, and the outcomes are those that a write would have
	// key is the idempotency key of a request; nil: what is created twice meets a unique index.
	key func(first, count int) string

	upload func(ctx context.Context, send func(ctx context.Context, c *client.Client, sent func(int64)) error) error // --files
}

// options are those of a request for count records from the first.
func (c *creator) options(first, count int) client.WriteOptions {
	o := client.WriteOptions{Minimal: true}
	if c.key != nil {
		o.IdempotencyKey = c.key(first, count)
	}
	return o
}

func (c *creator) send(ctx context.Context, first int, batch []item) ([]outcome, error) {
	if c.single || len(batch) == 1 && len(batch[0].files) > 0 {
		out := make([]outcome, len(batch))
		for i, it := range batch {
			err := c.retry.do(ctx, func() error {
				return c.one(ctx, it, c.options(first+i, 1))
			})
			if err := out[i].take(err); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	records := make([]api.Record, len(batch))
	for i, it := range batch {
		records[i] = it.record
	}
	var out []outcome
	err := c.retry.do(ctx, func() (err error) {
		out, err = c.many(ctx, records, c.options(first, len(batch)))
		return err
	})
	return out, err
}

// one creates a record.
func (c *creator) one(ctx context.Context, it item, o client.WriteOptions) error {
	namespace, collection := c.place.Namespace, c.place.Collection
	var err error
	switch {
	case len(it.files) > 0:
		return c.upload(ctx, func(ctx context.Context, with *client.Client, sent func(int64)) error {
			if c.dryRun {
				return with.TryCreateWithFiles(ctx, namespace, collection, it.record, it.files, sent, o)
			}
			_, err := with.CreateWithFiles(ctx, namespace, collection, it.record, it.files, sent, o)
			return err
		})
	case c.dryRun:
		_, err = c.client.TryCreate(ctx, namespace, collection, it.record, o)
	default:
		_, err = c.client.CreateRecord(ctx, namespace, collection, it.record, o)
	}
	return err
}

// change updates a record.
func (c *creator) change(ctx context.Context, id string, it item) error {
	namespace, collection := c.place.Namespace, c.place.Collection
	var err error
	switch o := (client.WriteOptions{Minimal: true}); {
	case len(it.files) > 0:
		return c.upload(ctx, func(ctx context.Context, with *client.Client, sent func(int64)) error {
			if c.dryRun {
				return with.TryUpdateWithFiles(ctx, namespace, collection, id, it.record, it.files, sent, client.WriteOptions{})
			}
			_, err := with.UpdateWithFiles(ctx, namespace, collection, id, it.record, it.files, sent, o)
			return err
		})
	case c.dryRun:
		_, err = c.client.TryUpdate(ctx, namespace, collection, id, it.record)
	default:
		_, err = c.client.UpdateRecord(ctx, namespace, collection, id, it.record, o)
	}
	return err
}

// many creates records in one request.
func (c *creator) many(ctx context.Context, records []api.Record, o client.WriteOptions) ([]outcome, error) {
	out := make([]outcome, len(records))
	if c.dryRun {
		answer, err := c.client.TryBulkCreate(ctx, c.place.Namespace, c.place.Collection, records, o)
		if err != nil {
			return nil, err
		}
		if answer.Succeeded+answer.Failed != len(records) || answer.Failed != len(answer.Items) {
			return nil, fmt.Errorf("the service answers with %d outcomes for %d records, and with %d of %d failures",
				answer.Succeeded+answer.Failed, len(records), len(answer.Items), answer.Failed)
		}
		for _, it := range answer.Items {
			if it.Index < 0 || it.Index >= len(out) {
				return nil, fmt.Errorf("the service answers with an outcome for record %d of %d", it.Index+1, len(records))
			}
			out[it.Index].problem = it.Error
		}
		return out, nil
	}
	answer, err := c.client.BulkCreate(ctx, c.place.Namespace, c.place.Collection, records, o)
	if err != nil {
		return nil, err
	}
	if len(answer.Items) != len(records) {
		return nil, fmt.Errorf("the service answers with %d outcomes for %d records", len(answer.Items), len(records))
	}
	for i, it := range answer.Items {
		out[i].problem = it.Error
	}
	return out, nil
}

// take makes err the outcome, if it is about the record; any other error comes back.
func (o *outcome) take(err error) error {
	if refused, ok := errors.AsType[*client.Error](err); ok && aboutRecords(refused) {
		o.problem = &refused.Problem
		return nil
	}
	return err
}

// upserter updates the records that have an item's value of key, and creates the others.
type upserter struct {
	creator *creator
	key     string // of a field with a unique index, or "id"

	// created are the records that a dry run of the batch has found to be created, by their key. Nothing of them is in the
	// service, where what follows in the batch would find them.
	created map[string]api.Record
}

// checkUpsert makes sure that the field of --upsert tells records apart.
func checkUpsert(opts *importOptions, col *api.CollectionDescription) error {
	if opts.Upsert == "" || opts.Upsert == "id" {
		return nil
	}
	unique := func(ix api.IndexDescription) bool {
		return ix.Unique && ix.State == api.IndexReady && len(ix.Key) == 1 && strings.TrimPrefix(ix.Key[0], "-") == opts.Upsert
	}
	if slices.ContainsFunc(col.Indexes, unique) {
		return nil
	}
	return &command.Error{
		Exit: command.ExitUsage, Code: "usage",
		Message: fmt.Sprintf("--upsert %s: the field has no unique index of its own that is ready, so it doesn't tell which record is meant", opts.Upsert),
		Hint:    fmt.Sprintf("svcctl collection indexes %s %s shows the indexes; index: [unique] makes one", opts.Namespace, opts.Collection),
	}
}

// idText is an id as keyText gives it; anything else is no record's, and the service would refuse the question.
var idText = regexp.MustCompile(`^"[0-9a-f]{24}"$`)

// lookupBatch is how many values one question after their records has.
const lookupBatch = 100

// updatesAtOnce is how many updates are under way at a time.
const updatesAtOnce = 8

func (u *upserter) send(ctx context.Context, number int, batch []item) ([]outcome, error) {
	u.created = map[string]api.Record{}
	return u.sendParts(ctx, number, batch)
}

// sendParts writes a batch, or what is left of it.
func (u *upserter) sendParts(ctx context.Context, number int, batch []item) ([]outcome, error) {
	// A value that comes twice is created first and updated then, so what follows its first time waits.
	seen := map[string]bool{}
	keys := make([]string, len(batch))
	for i, it := range batch {
		keys[i] = keyText(valueAt(it.given, u.key))
		if keys[i] != "" && seen[keys[i]] {
			first, err := u.sendUnique(ctx, batch[:i], keys[:i])
			if err != nil {
				return nil, err
			}
			rest, err := u.sendParts(ctx, number+i, batch[i:])
			return append(first, rest...), err
		}
		seen[keys[i]] = true
	}
	return u.sendUnique(ctx, batch, keys)
}

// sendUnique writes items whose keys differ.
func (u *upserter) sendUnique(ctx context.Context, batch []item, keys []string) ([]outcome, error) {
	ids, err := u.lookUp(ctx, keys)
	if err != nil {
		return nil, err
	}
	out := make([]outcome, len(batch))
	var create, update, change []int
	for i, key := range keys {
		switch {
		case key == "":
			out[i].problem = &api.Problem{Code: "no_key", Detail: "has no value of " + u.key + ", by which records are told apart"}
		case ids[key] != "":
			update = append(update, i)
		case u.created[key] != nil:
			change = append(change, i)
		case u.key == "id": // a new record gets an id of its own
			out[i].problem = &api.Problem{Code: "not_found", Detail: "there is no record with the id " + key}
		default:
			create = append(create, i)
		}
	}
	if len(create) > 0 {
		conflicts, err := u.create(ctx, batch, create, out)
		if err != nil {
			return nil, err
		}
		for _, i := range conflicts {
			found, err := u.lookUp(ctx, keys[i:i+1])
			if err != nil {
				return nil, err
			}
			if len(found) == 0 {
				if err := u.tryAlone(ctx, batch[i], &out[i]); err != nil {
					return nil, err
				}
			}
			for _, id := range found { // by the service's idea of equal, such as of two forms of one date
				ids[keys[i]] = id
				update = append(update, i)
			}
		}
	}
	for _, i := range change {
		if err := u.tryChange(ctx, keys[i], batch[i], &out[i]); err != nil {
			return nil, err
		}
	}
	return out, u.update(ctx, batch, update, func(i int) string { return ids[keys[i]] }, out)
}

// tryChange is the dry run of the update of a record that the same batch creates: the two together, as a create.
func (u *upserter) tryChange(ctx context.Context, key string, it item, o *outcome) error {
	c := u.creator
	changed := applyPatch(u.created[key], it.record)
	err := c.retry.do(ctx, func() error { return c.one(ctx, item{record: changed}, client.WriteOptions{}) })
	o.updated = true
	if err := o.take(err); err != nil || o.problem != nil {
		return err
	}
	u.created[key] = changed
	return nil
}

// tryAlone tells, in a dry run, what becomes of a record whose key is taken while no record has it that could be found: if it
// can be created alone, one of its batch has the key, in another form, and it would be an update of that.
func (u *upserter) tryAlone(ctx context.Context, it item, o *outcome) error {
	c := u.creator
	if !c.dryRun {
		return nil
	}
	err := c.retry.do(ctx, func() error { return c.one(ctx, it, client.WriteOptions{}) })
	if err == nil {
		*o = outcome{updated: true}
		return nil
	}
	return o.take(err)
}

// create creates some items of a batch, and gives those whose key has been taken.
func (u *upserter) create(ctx context.Context, batch []item, which []int, out []outcome) (conflicts []int, err error) {
	some := make([]item, len(which))
	for j, i := range which {
		some[j] = batch[i]
	}
	outcomes, err := u.creator.send(ctx, 0, some)
	if err != nil {
		return nil, err
	}
	for j, i := range which {
		out[i] = outcomes[j]
		switch p := out[i].problem; {
		case p != nil && taken(p, u.key):
			conflicts = append(conflicts, i)
		case p == nil && u.creator.dryRun:
			u.created[keyText(valueAt(batch[i].given, u.key))] = batch[i].record
		}
	}
	return conflicts, nil
}

// taken says whether a unique value, of a field, or of any, is that of another record.
func taken(p *api.Problem, field string) bool {
	return slices.ContainsFunc(p.Errors, func(f api.FieldError) bool {
		return f.Rule == "unique" && (field == "" || f.Path == field)
	})
}

// update updates some items of a batch, several at a time.
func (u *upserter) update(ctx context.Context, batch []item, which []int, id func(int) string, out []outcome) error {
	var (
		wg       sync.WaitGroup
		slots    = make(chan struct{}, updatesAtOnce)
		failures = make([]error, len(batch))
		c        = u.creator
	)
	for _, i := range which {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			err := c.retry.do(ctx, func() error { return c.change(ctx, id(i), batch[i]) })
			out[i] = outcome{updated: true}
			if refused, ok := errors.AsType[*client.Error](err); ok && refused.Status == http.StatusNotFound {
				out[i].problem = &refused.Problem // it went away since it was found
				return
			}
			failures[i] = out[i].take(err)
		})
	}
	wg.Wait()
	return errors.Join(failures...)
}

// lookUp finds the ids of the records that have these values of the key.
func (u *upserter) lookUp(ctx context.Context, keys []string) (map[string]string, error) {
	keys = slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return k == "" || u.key == "id" && !idText.MatchString(k) })
	ids := map[string]string{}
	for part := range slices.Chunk(keys, lookupBatch) {
		values := make([]json.RawMessage, len(part))
		for i, k := range part {
			values[i] = json.RawMessage(k)
		}
		filter, err := json.Marshal(map[string]any{u.key: map[string]any{"$in": values}})
		if err != nil {
			return nil, err
		}
		c := u.creator
		err = c.retry.do(ctx, func() error {
			for r, err := range c.client.Records(ctx, c.place.Namespace, c.place.Collection, client.Query{Filter: string(filter), Select: u.key}) {
				if err != nil {
					return err
				}
				ids[keyText(valueAt(r, u.key))] = recordID(r)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("look for records by %s: %w", u.key, err)
		}
	}
	return ids, nil
}

// valueAt is the value at a dotted path of a record, or nil.
func valueAt(record api.Record, path string) json.RawMessage {
	name, rest, deeper := strings.Cut(path, ".")
	list, err := members(record)
	if err != nil {
		return nil
	}
	for _, m := range list {
		if m.name == name && deeper {
			return valueAt(m.value, rest)
		}
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// keyText is a scalar in one form, so that two can be compared; "" for what is no key.
func keyText(value json.RawMessage) string {
	if len(value) == 0 || value[0] == '{' || value[0] == '[' || string(value) == "null" {
		return ""
	}
	var s string
	if json.Unmarshal(value, &s) != nil {
		return string(value) // a number or a boolean
	}
	raw, err := json.Marshal(s)
	if err != nil {
		return ""
	}
	return string(raw)
}
