package snapshot

import (
	"bytes"
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/fieldnames"
)

// Estimate is what a snapshot that is taken now would have.
type Estimate struct {
	Collections []Collection // with their records and bytes
	Documents   int64
	Bytes       int64 // of all records, as BSON
	MediaFiles  int64
	MediaBytes  int64 // by what the records say
	ConfigFiles int64
	ConfigBytes int64
}

// Estimate reads all records, and tells what a snapshot of them would have. Nothing is written.
func (s *Snapshots) Estimate(ctx context.Context, p *project.Project, profile Profile) (*Estimate, error) {
	db := fieldnames.Wrap(s.o.Store.Database(project.DatabaseName(p.Namespace)), p.FieldNames)
	view, err := db.View(ctx)
	if err != nil {
		return nil, ended(ctx, err)
	}
	defer view.Close() //nolint:errcheck // it was only read
	c := &creation{s: s, p: p, profile: profile, tracker: newTracker(nil)}
	sources, err := c.sources(ctx, db, view)
	if err != nil {
		return nil, ended(ctx, err)
	}
	out := &Estimate{Collections: []Collection{}}
	for _, text := range p.Bundle.Files {
		out.ConfigFiles++
		out.ConfigBytes += int64(len(text))
	}
	files := map[string]bool{} // by hash: each content is there once
	for _, src := range sources {
		col := Collection{Name: src.name, Undeclared: !src.known}
		err := view.Collection(src.config.StoredName()).Find(ctx, store.Query{}, func(doc bson.Raw) error {
			col.Documents++
			col.Bytes += int64(len(doc))
			if profile.Media {
				out.files(p.Namespace, src, doc, files)
			}
			return nil
		})
		if err != nil {
			return nil, ended(ctx, err)
		}
		out.Collections = append(out.Collections, col)
		out.Documents += col.Documents
		out.Bytes += col.Bytes
	}
	return out, nil
}

// files counts the files that a record names and that were not counted.
func (e *Estimate) files(namespace string, src source, doc bson.Raw, seen map[string]bool) {
	if !bytes.Contains(doc, []byte(project.FilesRoot(namespace))) {
		return
	}
	v, _ := document.Field(doc, "_id")
	id, ok := v.ObjectIDOK()
	if !ok {
		return
	}
	src.config.FileAddresses(namespace, id).Each(doc, func(_ string, file bson.Raw) {
		hash, ok := file.Lookup("hash").StringValueOK()
		if !ok || seen[hash] {
			return
		}
		seen[hash] = true
		size, _ := file.Lookup("size").AsInt64OK()
		e.MediaFiles++
		e.MediaBytes += size
	})
}
