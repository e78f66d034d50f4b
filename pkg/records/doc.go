// Package records is the collection service: list, read, create, update, delete and their bulk forms, with every right,
// limit and rule applied. Each door (REST today) calls these methods and nothing below them, so no door can differ
// from another.
//
// Start reading at Service, then at create.go: each verb is a short list of named steps, and write.go is where those that
// write meet. query.Resolver is the one place
// where a path or constant that came from a caller is checked and cast; protect.go keeps hidden and readonly fields
// as they are through every write. aggregate.go and facet.go run pipelines; query.Guard says which.
//
// Where scripts come in: stages.go has the stages of writes, readstages.go those of reads, evals.go what expressions hide
// or make readonly. host.go is the db module that scripts see, session.go the transaction that they share with a write.
//
// Changes: feed.go tells one reader of them, feedhub.go has the readers of a collection share one reading of the store, and
// feedknown.go keeps what each has in sight.
//
// What does not live here: who the caller is (pkg/auth), what a permission set says (pkg/access), what a field may
// hold (pkg/fieldtype), how a script runs (pkg/hooks, pkg/script), and HTTP (pkg/httpapi).
package records
