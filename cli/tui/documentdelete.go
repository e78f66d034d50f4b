package tui

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/client"
)

// shownOfMany is how many of what is to be deleted are named.
const shownOfMany = 5

// askDelete asks whether the marked records, or that with the cursor, are to be deleted.
func (d *documents) askDelete() tea.Cmd {
	var ids []string
	for _, one := range d.records {
		if d.marks[one.id] {
			ids = append(ids, one.id)
		}
	}
	if one := d.document(d.list.Selected()); len(ids) == 0 && one != nil {
		ids = []string{one.id}
	}
	switch {
	case len(ids) == 0:
		return d.host.Say("move to a record first")
	case !d.may("delete"):
		return d.host.Lack("delete of " + d.place.Collection)
	}
	of := d.place.Namespace + "/" + d.place.Collection
	text := []string{fmt.Sprintf("Delete %s of %s, with their files. They don't come back, but from a snapshot.", output.Count(len(ids), "record"), of), ""}
	revisions := make([]string, len(ids))
	for i, id := range ids {
		one := d.document(id)
		revisions[i] = revisionOf(one.record)
		if i < shownOfMany {
			text = append(text, "  "+id+"  "+one.row.Cells[0].Text)
		}
	}
	if more := len(ids) - shownOfMany; more > 0 {
		text = append(text, fmt.Sprintf("  … and %d more", more))
	}
	return confirmTyped(d.host, typedQuestion{
		title: "Delete " + output.Count(len(ids), "record"), lines: text, word: d.place.Collection, does: "delete",
		act: func() tea.Cmd {
			return d.host.Act("deleting "+output.Count(len(ids), "record"), func(ctx context.Context) (string, error) { return d.deleteAll(ctx, ids, revisions) })
		},
	})
}

// deleteAll deletes records as they were when they were shown: what others have changed since stays.
func (d *documents) deleteAll(ctx context.Context, ids, revisions []string) (done string, err error) {
	deleted, changed, warning := 0, 0, ""
	for i, id := range ids {
		o := client.WriteOptions{}
		if revisions[i] != "" {
			o.IfMatch = strconv.Quote(revisions[i])
		}
		result, err := d.host.Client.DeleteRecord(ctx, d.place.Namespace, d.place.Collection, id, o)
		switch {
		case client.IsStatus(err, http.StatusNotFound):
		case client.IsStatus(err, http.StatusPreconditionFailed):
			changed++
		case err != nil:
			if deleted > 0 {
				err = fmt.Errorf("%s deleted, %d not: %w", output.Count(deleted, "record"), len(ids)-i, err)
			}
			return "", err
		default:
			deleted++
			if result.Warning != "" {
				warning = "; " + result.Warning
			}
		}
	}
	done = output.Count(deleted, "record") + " deleted"
	if changed > 0 {
		done += fmt.Sprintf(", %d not: changed by others since they were shown", changed)
	}
	return done + warning, nil
}

// revisionOf is the revision of a record; "": it has none.
func revisionOf(record []byte) string {
	members, err := membersOf(record)
	if err != nil {
		return ""
	}
	i := slices.IndexFunc(members, func(m member) bool { return m.name == "_rev" })
	if i < 0 {
		return ""
	}
	return strings.TrimSpace(string(members[i].value))
}
