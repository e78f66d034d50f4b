package snapshot

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/svcctl/svc/pkg/project"
)

// maxTold bounds the names of a warning, and the warnings of a kind: whoever made an archive could make as many as there is room for.
const maxTold = 20

// tellMade warns of what a project is made with, and without.
func (r *restore) tellMade(d *project.Detached, foreign bool) {
	if d.Tokens > 0 {
		r.t.warn("the tokens of the config are left out of that of " + d.Namespace + ": give it some of its own")
	}
	if len(d.Secrets) > 0 {
		r.t.warn("the project gets copies of the files that its config reads secrets from: " + some("%.200q", slices.Sorted(maps.Keys(d.Secrets))))
	}
	if len(d.Unread) > 0 {
		r.t.warn("files that are no part of the config are left out: " + some("%.200q", d.Unread))
	}
	for _, a := range d.Assets {
		r.t.warn(fmt.Sprintf("the folder %.200q of the asset %.80q is in no snapshot: bring its files", a.Path, a.Name))
	}
	if jobs := actingJobs(d.Project); len(jobs) > 0 {
		r.t.warn("these jobs run by schedule in " + d.Namespace + ", too: " + some("%.80q", jobs) + ": take what is not to be done twice out of its files, and reload it")
	}
	if profiles := actingProfiles(d.Project); len(profiles) > 0 {
		r.t.warn("these snapshot profiles are enabled in " + d.Namespace + ", too: " + some("%.80q", profiles) + ": have enabled: false in its files where they are not to be, and reload it")
	}
	if !foreign { // who is named was given that by whoever writes the configs of this service
		return
	}
	if hook := d.Config.Hook; hook != nil && hook.HTTP != nil && len(hook.HTTP.Allow) > 0 {
		r.t.warn("the config that came with the archive lets its scripts call these hosts from this service: " + some("%.80q", hook.HTTP.Allow))
	}
	named := d.Named()
	for i, n := range named {
		if i == maxTold {
			r.t.warn(fmt.Sprintf("the config that came with the archive gives rights to %d more by name: look at it", len(named)-maxTold))
			return
		}
		r.t.warn(fmt.Sprintf("the config that came with the archive gives rights to the %s %.80q of this service: %s", n.Kind, n.Name, some("%s", n.Where)))
	}
}

// actingJobs are the jobs that a project runs by itself, by name.
func actingJobs(p *project.Project) (names []string) {
	for _, j := range p.Jobs {
		if j.Schedule != nil {
			names = append(names, j.Name)
		}
	}
	return names
}

// actingProfiles are the profiles by which snapshots are taken, checked, rehearsed or pruned without that anybody asks for it, by name.
func actingProfiles(p *project.Project) (names []string) {
	for _, s := range p.Snapshots {
		if s.Enabled() && (s.Take != nil || s.Verify != nil || s.Drill != nil || s.Config.Retention != nil) {
			names = append(names, s.Name)
		}
	}
	return names
}

// some lists the first of some names.
func some(format string, names []string) string {
	var b strings.Builder
	for i, name := range names {
		if i == maxTold {
			fmt.Fprintf(&b, ", and %d more", len(names)-maxTold)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, format, name)
	}
	return b.String()
}
