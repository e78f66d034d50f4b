package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	scaleProjects    = 50
	scaleCollections = 1000 // over all projects; as many in each, but for the largest
	largestProject   = 100  // collections of one of them
	scaleRounds      = 7
	scaleRest        = 75 * time.Second // longer than the time between two resyncs
)

// measureScale measures a service with many projects: how long it takes to start, what a project that nobody uses takes of
// memory, how long a reload of a project of many collections takes, and what resyncs do while nothing changes.
func measureScale(ctx context.Context, o options) (err error) {
	s, err := newServer(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.remove()) }()
	if err := s.start(ctx, "/readyz"); err != nil {
		return err
	}
	alone, err := s.atRest(ctx)
	if err != nil {
		return err
	}
	if err := s.addProjects(ctx); err != nil {
		return err
	}
	var starts []float64
	for range scaleRounds {
		if err := s.stop(); err != nil {
			return err
		}
		began := time.Now()
		if err := s.start(ctx, "/readyz"); err != nil {
			return err
		}
		starts = append(starts, seconds(began))
	}
	many, err := s.atRest(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%d collections in %d projects, %s store\n", scaleCollections, scaleProjects, s.store())
	fmt.Printf("start until it is ready (target: 5 s)           %.2f s (median of %d)\n", median(starts), len(starts))
	fmt.Printf("memory of a project at rest (target: 1 MiB)     %.2f MiB\n", (many.mib-alone.mib)/scaleProjects)

	unchanged, changed, err := s.reloads(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("reload of %d collections (target: 300 ms)      %.0f ms, %.0f ms when nothing has changed (medians of %d)\n",
		largestProject, 1000*median(changed), 1000*median(unchanged), len(changed))

	before, err := s.atRest(ctx)
	if err != nil {
		return err
	}
	written := time.Now()
	if err := wait(ctx, scaleRest); err != nil {
		return err
	}
	after, err := s.usage(ctx)
	if err != nil {
		return err
	}
	last, err := lastWritten(filepath.Join(s.dir, "data"))
	if err != nil {
		return err
	}
	writes := "nothing written"
	if last.After(written) {
		writes = "the data directory was written to"
	}
	if s.store() != "embedded" {
		writes += " on its own disk"
	}
	fmt.Printf("at rest for %.0f s, with resyncs                  %.2f s of CPU time, %s\n",
		scaleRest.Seconds(), after.cpuSeconds-before.cpuSeconds, writes)
	return nil
}

// lastWritten is when a file of a directory was last written to.
func lastWritten(dir string) (last time.Time, err error) {
	err = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
		return err
	})
	return last, err
}

func seconds(since time.Time) float64 { return time.Since(since).Seconds() }

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// atRest is what the service takes when what its start has left behind is collected.
func (s *server) atRest(ctx context.Context) (usage, error) {
	if err := wait(ctx, 10*time.Second); err != nil {
		return usage{}, err
	}
	return s.usage(ctx)
}

// scaleName names the i-th project. The first is the largest.
func scaleName(i int) string { return fmt.Sprintf("scale%02d", i) }

// addProjects writes and registers the projects, and waits until they are served.
func (s *server) addProjects(ctx context.Context) error {
	config, err := os.ReadFile(filepath.Join(s.projectDir(), "articles.yaml"))
	if err != nil {
		return err
	}
	permissions, err := os.ReadFile(filepath.Join(s.projectDir(), "public.yaml"))
	if err != nil {
		return err
	}
	rest := scaleCollections - largestProject
	for i := range scaleProjects {
		collections := largestProject
		if i > 0 {
			collections = (rest + scaleProjects - 1 - i) / (scaleProjects - i)
			rest -= collections
		}
		var project strings.Builder
		project.WriteString("namespace: " + scaleName(i) + "\ncollections:\n")
		files := map[string]string{"public.yaml": string(permissions)}
		for j := range collections {
			name := fmt.Sprintf("c%03d", j)
			files[name+".yaml"] = strings.NewReplacer("name: articles", "name: "+name, "collection: authors", "collection: c000").Replace(string(config))
			project.WriteString("  - " + name + ".yaml\n")
		}
		files["project.yaml"] = project.String()
		for name, text := range files {
			if err := s.writeConfig(i, name, text); err != nil {
				return err
			}
		}
		registration := map[string]any{"configFile": scaleName(i) + "/project.yaml"}
		if err := s.want(ctx, http.MethodPost, "/api/v1/project", registration, http.StatusCreated, nil); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "\r%d of %d projects registered", i+1, scaleProjects)
	}
	fmt.Fprintln(os.Stderr)
	return nil
}

func (s *server) writeConfig(project int, name, text string) error {
	dir := filepath.Join(s.dir, "projects", scaleName(project))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)
}

// reloads reloads the largest project by turns as it is and with a field more or less in one of its collections.
func (s *server) reloads(ctx context.Context) (unchanged, changed []float64, err error) {
	path := "/api/v1/_/" + scaleName(0) + "/_/admin/reload?wait=true"
	file := filepath.Join(s.dir, "projects", scaleName(0), "c050.yaml")
	config, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, err
	}
	more := strings.Replace(string(config), "fields:\n", "fields:\n  - { name: added, type: string }\n", 1)
	for round := range 2 * scaleRounds {
		if err := wait(ctx, 2*time.Second); err != nil { // what watching makes of the change before is over
			return nil, nil, err
		}
		began := time.Now()
		if err := s.want(ctx, http.MethodPost, path, nil, http.StatusOK, nil); err != nil {
			return nil, nil, err
		}
		unchanged = append(unchanged, seconds(began))
		text := string(config)
		if round%2 == 0 {
			text = more
		}
		if err := s.writeConfig(0, "c050.yaml", text); err != nil {
			return nil, nil, err
		}
		began = time.Now()
		if err := s.want(ctx, http.MethodPost, path, nil, http.StatusOK, nil); err != nil {
			return nil, nil, err
		}
		changed = append(changed, seconds(began))
	}
	return unchanged, changed, nil
}
