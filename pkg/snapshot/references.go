package snapshot

import (
	"cmp"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/project"
)

// place is where a file is named.
func (d *Differing) place() string {
	return d.Collection + "/" + d.Record + "/" + d.Field + "/" + d.Name
}

// words name a file of a record for people, at no more than a length: what comes in as an archive has the names that somebody has given it.
func (d *Differing) words() string {
	return fmt.Sprintf("the file %.200s/%.200s of %.200s/%s", d.Field, d.Name, d.Collection, d.Record)
}

// differing gives what files of records are that are not what these say, by place.
func (m *Manifest) differing() map[string]string {
	out := make(map[string]string, len(m.Differing))
	for i := range m.Differing {
		out[m.Differing[i].place()] = m.Differing[i].SHA256
	}
	return out
}

// eachReference calls fn for each file that a record of a snapshot names, with its hash there, and what names it.
func eachReference(m *Manifest, col *Collection, doc bson.Raw, differing map[string]string, fn func(at Differing)) {
	eachFile(m, col, doc, differing, func(at Differing, is string) {
		at.SHA256 = is
		fn(at)
	})
}

// eachFile calls fn for each file that a record of a snapshot names, with what names it and its hash by the record, and with the hash that it had when the snapshot was taken.
func eachFile(m *Manifest, col *Collection, doc bson.Raw, differing map[string]string, fn func(at Differing, is string)) {
	eachNamed(m.Namespace, &project.Collection{Name: col.Name}, doc, func(_ string, at Differing) {
		fn(at, cmp.Or(differing[at.place()], at.SHA256))
	})
}

// eachNamed calls fn for each file that a record of a project names, with its media.Key, what names it, and the hash that it has by the record.
func eachNamed(namespace string, config *project.Collection, doc bson.Raw, fn func(key string, at Differing)) {
	v, _ := document.Field(doc, "_id")
	id, ok := v.ObjectIDOK()
	if !ok {
		return
	}
	addresses := config.FileAddresses(namespace, id)
	addresses.Each(doc, func(key string, file bson.Raw) {
		src, _ := file.Lookup(project.FileSrc).StringValueOK()
		at := Differing{Collection: config.Name, Record: id.Hex()}
		at.Field, at.Name, _ = addresses.Cut(src)
		at.SHA256, _ = file.Lookup("hash").StringValueOK()
		fn(key, at)
	})
}
