package mongo

import (
	"context"
	"math"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/store"
)

// Explain runs q and tells how. In transactions and views it tells of the documents there are now, which is all that
// the server can do.
func (c *collection) Explain(ctx context.Context, q store.Query) (ex store.Explanation, err error) {
	if err := q.Check(); err != nil {
		return ex, err
	}
	find := bson.D{{Key: "find", Value: c.name}, {Key: "filter", Value: rawFilter(afterFilter(q))}, {Key: "allowDiskUse", Value: true}}
	if len(q.Sort) > 0 {
		find = append(find, bson.E{Key: "sort", Value: sortDocument(q.Sort)})
	}
	if q.Skip > 0 {
		find = append(find, bson.E{Key: "skip", Value: q.Skip})
	}
	if q.Limit > 0 && q.Limit <= math.MaxInt64-max(q.Skip, 0) {
		find = append(find, bson.E{Key: "limit", Value: q.Limit})
	}
	if q.Project != nil && !projectsHere(q) {
		find = append(find, bson.E{Key: "projection", Value: q.Project.Raw()})
	}
	reply, err := c.explain(ctx, find)
	if err == nil {
		readExplanation(reply, &ex)
	}
	return ex, err
}

// explain lets the server run a command and tell how.
func (c *collection) explain(ctx context.Context, command bson.D) (reply bson.Raw, err error) {
	err = c.database.collection(c.name, c.database.store.inSession).run(ctx, func(ctx context.Context) error {
		return c.database.store.again(ctx, func() (err error) {
			reply, err = c.database.db.RunCommand(ctx, bson.D{{Key: "explain", Value: command}, {Key: "verbosity", Value: "executionStats"}}).Raw()
			return err
		}, isPassing)
	})
	return reply, err
}

// readExplanation reads what the server says of a query.
func readExplanation(reply bson.Raw, ex *store.Explanation) {
	ex.KeysExamined, _ = reply.Lookup("executionStats", "totalKeysExamined").AsInt64OK()
	ex.DocsExamined, _ = reply.Lookup("executionStats", "totalDocsExamined").AsInt64OK()
	ex.Returned, _ = reply.Lookup("executionStats", "nReturned").AsInt64OK()
	if plan, ok := reply.Lookup("queryPlanner", "winningPlan").DocumentOK(); ok {
		readPlan(plan, ex)
	}
}

// readPlan walks the stages of a plan, which versions and deployments of the server nest differently, for
// indexes and for a sort.
func readPlan(plan bson.Raw, ex *store.Explanation) {
	elements, _ := plan.Elements()
	for _, e := range elements {
		switch value := e.Value(); e.Key() {
		case "stage":
			stage, _ := value.StringValueOK()
			switch stage {
			case "SORT":
				ex.SortInMemory = true
			case "IDHACK", "EXPRESS_CLUSTERED_IXSCAN":
				useIndex(ex, "_id")
			}
		case "indexName":
			if isJoin(plan) {
				continue // of the other collection
			}
			name, _ := value.StringValueOK()
			useIndex(ex, name)
		default:
			if child, ok := value.DocumentOK(); ok {
				readPlan(child, ex)
			} else if children, ok := value.ArrayOK(); ok {
				readPlan(bson.Raw(children), ex)
			}
		}
	}
}

func useIndex(ex *store.Explanation, name string) {
	if name == primaryIndex {
		name = "_id"
	}
	if !slices.Contains(ex.Indexes, name) {
		ex.Indexes = append(ex.Indexes, name)
	}
}
