package engine_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/search/engine"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// TestS19WornIndexes is row S19: an index does not grow with each write of a record for ever. It is made anew while the one before answers.
func TestS19WornIndexes(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, articles)
		engine.WearOut(w.engine, 20)
		for n := 1; n <= 3; n++ {
			w.put("articles", doc(n, "title", "red fox"))
		}
		w.soon("main", "fox", []int{1, 2, 3})
		before := engine.IndexNames(w.engine)
		words := strings.Fields("alpha bravo charlie delta echo foxtrot golf hotel india juliett")
		for i := range words {
			for n := 1; n <= 3; n++ {
				w.put("articles", doc(n, "title", "red "+words[i]))
			}
		}
		for { // until both are others, complete
			settled := true
			for _, x := range w.engine.Queue(w.project, w.project.Collections["articles"]).Searches {
				settled = settled && x.State == engine.Ready
			}
			if after := engine.IndexNames(w.engine); settled && len(after) == 2 && after[0] != before[0] && after[1] != before[1] {
				break
			}
			runtime.Gosched()
		}
		w.finds("articles", "main", "+juliett", []int{1, 2, 3})
		w.finds("articles", "main", "+india", nil)
		w.put("articles", doc(4, "title", "red cat"))
		w.finds("articles", "main", "cat", []int{4})
	})
}
