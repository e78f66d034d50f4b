package httpapi

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/gzhttp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/audit"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/snapshot/runs"
)

// downloadSnapshot answers with a snapshot as one archive, which is made as it goes out.
func (s *Server) downloadSnapshot(w http.ResponseWriter, r *request) error {
	id, profile, err := s.snapshotOf(r)
	if err != nil {
		return err
	}
	return s.sendArchive(w, r, profile, id)
}

// sendArchive sends a snapshot as an archive. What fails before its first byte is an answer; what fails later breaks the connection off,
// so that nobody takes what has come for a whole one.
func (s *Server) sendArchive(w http.ResponseWriter, r *request, profile, id string) error {
	out := &archiveWriter{
		fileWriter: fileWriter{ResponseWriter: w, control: http.NewResponseController(w), start: time.Now()},
		id:         id,
		name:       r.project.Namespace + "-" + profile + "-" + id + ".tar.zst",
	}
	if r.Method == http.MethodHead {
		out.begin()
		w.WriteHeader(http.StatusOK)
		return nil
	}
	r.useReserve()
	if err := s.cfg.System.Snapshotted(r.Context(), audit.OpDownload, r.project.Namespace, profile, id, nil); err != nil {
		return err
	}
	err := s.cfg.Snapshots.Export(r.Context(), r.project, id, out)
	switch {
	case err == nil || !out.begun:
		return err
	case out.err != nil:
		err = errClientGone.With(out.err)
	}
	r.cutOff = true
	return err
}

// archiveWriter sends an archive, with the head of the answer before its first byte.
type archiveWriter struct {
	fileWriter

	id    string
	name  string
	begun bool
}

func (a *archiveWriter) begin() {
	a.begun = true
	h := a.Header()
	h.Set("Content-Type", api.MediaZstd)
	h.Set(api.HeaderSnapshot, a.id)
	h.Set("Content-Disposition", disposition(a.name, true))
	h.Set("Cache-Control", "private, no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set(gzhttp.HeaderNoCompression, "true")
}

func (a *archiveWriter) Write(p []byte) (int, error) {
	if !a.begun {
		a.begin()
	}
	return a.fileWriter.Write(p)
}

// importSnapshot takes in an archive. The answer comes when it is a snapshot, or refused.
func (s *Server) importSnapshot(w http.ResponseWriter, r *request) error {
	profile, err := r.one(api.ParamProfile)
	if err != nil {
		return err
	}
	in, err := s.receive(w, r, audit.OpImport, nil)
	if err != nil {
		return err
	}
	in.Profile = profile
	info, err := s.cfg.Snapshots.Receive(r.Context(), r.project, in)
	if err != nil {
		return err
	}
	w.Header().Set(api.HeaderLocation, api.SnapshotPath(r.project.Namespace, info.ID))
	out := runs.SnapshotOut(&info)
	out.Run = in.ID
	return r.json(w, http.StatusCreated, out)
}

// receive prepares to take in the request's body, which is read as it comes and in little memory. may, which may be nil, says whether the caller
// may do what is done with it, besides what the route asks for.
func (s *Server) receive(w http.ResponseWriter, r *request, op string, may func(now *request) error) (runs.Receive, error) {
	if _, err := r.mediaType(api.MediaZstd, "application/octet-stream"); err != nil {
		return runs.Receive{}, err
	}
	control := http.NewResponseController(w)
	id := bson.NewObjectIDFromTimestamp(s.cfg.Now()).Hex()
	body := &archiveBody{r: r, from: ratedReader{r: r.Body, control: control}}
	body.from.over = body.ending.Load
	return runs.Receive{
		Body: body, Interrupt: body.interrupt, MaxBytes: s.cfg.MaxImport,
		Start: runs.Start{ID: id, By: actorOf(r), Note: s.noteRun(r, op, id)},
		// When all has come, the caller is let in anew: that may have taken hours.
		Confirm: func() error {
			now, err := r.again()
			if err != nil || may == nil {
				return err
			}
			return may(now)
		},
	}, nil
}

// archiveBody is the body of a request, whose sender is held to the least rate from when it is first read.
type archiveBody struct {
	r      *request
	from   ratedReader
	ending atomic.Bool
}

// interrupt ends a Read that waits for the sender, and those that come.
func (b *archiveBody) interrupt() {
	b.ending.Store(true)
	_ = b.from.control.SetReadDeadline(time.Now()) // where there is no connection, nothing waits
}

func (b *archiveBody) Read(p []byte) (int, error) {
	if b.from.start.IsZero() {
		b.from.start = time.Now()
	}
	n, err := b.from.Read(p)
	switch {
	case err != nil && b.ending.Load():
		return n, err
	case errors.Is(err, io.EOF):
		b.r.unread = false
		if err := supported(b.from.control.SetReadDeadline(time.Time{})); err != nil { // it was the body's
			return n, errClientGone.With(err)
		}
	case errors.Is(err, errSlowBody):
		b.r.unread = false // nothing more will come; the connection's deadline stays
		return n, errSlowBody
	case err != nil:
		b.r.unread = false
		return n, errs.New(errs.Invalid, "bad_body", "the body could not be read to its end").With(err)
	}
	return n, err
}
