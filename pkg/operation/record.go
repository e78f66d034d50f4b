package operation

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

// collectionName is where runs are. No collection of a project can have such a name.
const collectionName = "svc.runs"

const (
	maxInput  = 256 << 10
	maxResult = 4 << 20
)

// record is a run as it is stored. What scripts give is kept as bytes: names in it may be ones that no stored document
// can have.
type record struct {
	Run    `bson:",inline"`
	Input  []byte `bson:"input,omitempty"`
	Result []byte `bson:"result,omitempty"`
	Output []byte `bson:"output,omitempty"`
	Token  string `bson:"token"` // of this holding of the record
	Beat   int64  `bson:"beat"`  // grows with each write of who does the run

	Decided *decided `bson:"decided,omitempty"` // what it has given in any case; see Runs.Settle
}

// indexes serve the history of an action or job, and the look for runs that are active.
func indexes() []store.Index {
	return []store.Index{
		{Name: "history", Keys: []store.IndexKey{{Path: "kind"}, {Path: "name"}, {Path: "createdAt", Desc: true}}},
		{Name: "status", Keys: []store.IndexKey{{Path: "status"}}},
	}
}

// packable makes a value storable. Its Type is 0 where v is nil, or too large (errTooLarge).
func packable(v any, limit int) (bson.RawValue, error) {
	if v == nil {
		return bson.RawValue{}, nil
	}
	raw, err := document.MarshalValue(v)
	if err != nil && errs.KindOf(err) != errs.TooLarge {
		return bson.RawValue{}, err
	}
	if err != nil || len(raw.Value) > limit {
		return bson.RawValue{}, errTooLarge
	}
	return raw, nil
}

// pack puts the type of a value in front of its bytes.
func pack(v bson.RawValue) []byte {
	if v.Type == 0 {
		return nil
	}
	return append([]byte{byte(v.Type)}, v.Value...)
}

func unpack(b []byte) bson.RawValue {
	if len(b) == 0 {
		return bson.RawValue{}
	}
	return bson.RawValue{Type: bson.Type(b[0]), Value: b[1:]}
}

func encode(run *Run, token string) (bson.Raw, error) {
	doc, err := bson.Marshal(record{Run: *run, Input: pack(run.Input), Result: pack(run.Result), Output: pack(run.Output), Token: token})
	if err != nil {
		return nil, errs.Wrap(err, "encode a run")
	}
	return doc, nil
}

func decode(doc bson.Raw) (*record, error) {
	var r record
	if err := bson.Unmarshal(doc, &r); err != nil {
		return nil, errs.Wrap(err, "decode a run")
	}
	r.Run.Input, r.Run.Result, r.Run.Output = unpack(r.Input), unpack(r.Result), unpack(r.Output)
	return &r, nil
}

// state is what of a run changes while it goes.
func state(run *Run) bson.D {
	p := run.Progress
	values := bson.D{
		{Key: "status", Value: string(run.Status)},
		{Key: "progress", Value: bson.D{
			{Key: "phase", Value: p.Phase},
			{Key: "collection", Value: p.Collection},
			{Key: "message", Value: p.Message},
			{Key: "done", Value: p.Done},
			{Key: "total", Value: p.Total},
			{Key: "bytesDone", Value: p.BytesDone},
			{Key: "bytesTotal", Value: p.BytesTotal},
			{Key: "written", Value: p.Written},
			{Key: "linked", Value: p.Linked},
			{Key: "copied", Value: p.Copied},
			{Key: "deduplicated", Value: p.Deduplicated},
			{Key: "warnings", Value: p.Warnings},
		}},
		{Key: "phases", Value: phaseList(run.Phases)},
		{Key: "events", Value: eventList(run.Events)},
		{Key: "lastEvent", Value: run.LastEvent},
	}
	if !run.StartedAt.IsZero() {
		values = append(values, bson.E{Key: "startedAt", Value: run.StartedAt})
	}
	if run.CancelRequested {
		values = append(values, bson.E{Key: "cancel", Value: true})
	}
	return values
}

func phaseList(phases []Phase) bson.A {
	list := make(bson.A, len(phases))
	for i, p := range phases {
		list[i] = bson.D{
			{Key: "name", Value: p.Name},
			{Key: "done", Value: p.Done},
			{Key: "total", Value: p.Total},
			{Key: "bytesDone", Value: p.BytesDone},
			{Key: "bytesTotal", Value: p.BytesTotal},
			{Key: "took", Value: int64(p.Took)},
		}
	}
	return list
}

func eventList(events []Event) bson.A {
	list := make(bson.A, len(events))
	for i, e := range events {
		list[i] = bson.D{
			{Key: "id", Value: e.ID},
			{Key: "at", Value: e.At},
			{Key: "event", Value: string(e.Kind)},
			{Key: "data", Value: e.Data},
		}
	}
	return list
}

// lastState is state of a run that has ended.
func lastState(run *Run) (bson.D, error) {
	values := append(state(run), bson.E{Key: "finishedAt", Value: run.FinishedAt})
	if run.Subject != "" {
		values = append(values, bson.E{Key: "subject", Value: run.Subject})
	}
	if f := run.Error; f != nil {
		raw, err := bson.Marshal(f)
		if err != nil {
			return nil, errs.Wrap(err, "encode why a run failed")
		}
		values = append(values, bson.E{Key: "error", Value: bson.Raw(raw)})
	}
	for name, v := range map[string]bson.RawValue{"result": run.Result, "output": run.Output} {
		if v.Type != 0 {
			values = append(values, bson.E{Key: name, Value: bson.Binary{Data: pack(v)}})
		}
	}
	return values, nil
}

func isActive() bson.E {
	return bson.E{Key: "status", Value: bson.D{{Key: "$in", Value: bson.A{string(Queued), string(Running)}}}}
}

func active() *mql.Filter { return mql.MustCompile(bson.D{isActive()}) }

// ours matches a run that is still its holder's to do.
func ours(token string) *mql.Filter {
	return mql.MustCompile(bson.D{{Key: "token", Value: token}, isActive()})
}

// beat is the update of who does the run.
func beat(values bson.D) *mql.Update {
	update := bson.D{{Key: "$inc", Value: bson.D{{Key: "beat", Value: int64(1)}}}}
	if len(values) > 0 {
		update = append(update, bson.E{Key: "$set", Value: values})
	}
	return mql.MustCompileUpdate(update)
}

func set(values bson.D) *mql.Update {
	return mql.MustCompileUpdate(bson.D{{Key: "$set", Value: values}})
}

func stringID(id string) bson.RawValue {
	raw, err := document.MarshalValue(id)
	if err != nil { // no text: there is no such id
		return bson.RawValue{Type: bson.TypeNull}
	}
	return raw
}

func cancelOnly() *mql.Projection {
	return mql.MustCompileProjection(bson.D{{Key: "cancel", Value: int64(1)}, {Key: "token", Value: int64(1)}, {Key: "status", Value: int64(1)}})
}

func wanted(doc bson.Raw) bool {
	wish, _ := doc.Lookup("cancel").BooleanOK()
	return wish
}

// cancelWanted reads whether somebody wants a run cancelled; errs.ErrNotFound if it is no longer its holder's.
func cancelWanted(ctx context.Context, coll store.Reader, id, token string) (wish bool, err error) {
	found := false
	q := store.Query{Filter: mql.MustCompile(bson.D{{Key: "_id", Value: id}}), Project: cancelOnly(), Limit: 1}
	err = coll.Find(ctx, q, func(doc bson.Raw) error {
		found, wish = ours(token).Match(doc), wanted(doc)
		return nil
	})
	if err == nil && !found {
		return false, errs.ErrNotFound
	}
	return wish, err
}

// write applies one op.
func write(ctx context.Context, to store.Writer, op store.Op) error {
	results, err := to.Write(ctx, []store.Op{op}, true)
	if err != nil {
		return err
	}
	return results[0].Err
}

// read gives a run as it is stored, or ErrNotFound.
func (rs *Runs) read(ctx context.Context, database string, ref Ref) (*Run, error) {
	doc, err := rs.runsOf(database).Get(ctx, stringID(ref.ID))
	if errors.Is(err, errs.ErrNotFound) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	r, err := decode(doc)
	if err != nil {
		return nil, err
	}
	if r.Kind != ref.Kind || r.Name != ref.Name {
		return nil, ErrNotFound
	}
	return &r.Run, nil
}
