package store

import (
	"slices"

	"github.com/svcctl/svc/pkg/mql/pipeline"
)

// AggregateOptions is what one Aggregate may use. Its time is that of its ctx.
type AggregateOptions struct {
	// Memory is how many bytes stages hold together; 0: 100 MiB. A MongoDB server has 100 MiB for each stage, whatever
	// this says.
	Memory      int64
	ResultBytes int64 // of all results together; 0: no limit
	Results     int64 // number of results; 0: no limit
}

// Budget is o for a run of a pipeline.
func (o AggregateOptions) Budget() pipeline.Budget {
	return pipeline.Budget{Memory: o.Memory, ResultBytes: o.ResultBytes, Results: o.Results}
}

// AggregateExplanation is how a pipeline ran.
type AggregateExplanation struct {
	// Explanation is that of the documents of the collection itself, as the stages that come first ask for them.
	Explanation
	// Others is how documents of other collections were found, by $lookup above all: a MongoDB server does not tell of
	// every stage.
	Others []OtherExplanation
}

// OtherExplanation is how a pipeline found documents of another collection.
type OtherExplanation struct {
	Collection string
	Indexes    []string // the names of those used; none is a scan of the whole collection
}

// Uses notes that documents of another collection were found by indexes.
func (e *AggregateExplanation) Uses(collection string, indexes ...string) {
	i := slices.IndexFunc(e.Others, func(o OtherExplanation) bool { return o.Collection == collection })
	if i < 0 {
		i = len(e.Others)
		e.Others = append(e.Others, OtherExplanation{Collection: collection})
	}
	for _, name := range indexes {
		if !slices.Contains(e.Others[i].Indexes, name) {
			e.Others[i].Indexes = append(e.Others[i].Indexes, name)
		}
	}
}

// CheckPipeline refuses a pipeline that reads a collection whose name none can have (ErrBadName).
func CheckPipeline(p *pipeline.Pipeline) error {
	for _, name := range p.Collections() {
		if err := CheckCollectionName(name); err != nil {
			return err
		}
	}
	return nil
}
