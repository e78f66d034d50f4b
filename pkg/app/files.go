package app

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/svcctl/svc/pkg/media"
)

// What the settings of pictures are where nothing is said.
const (
	DefaultPictureCache  = 1 << 30
	DefaultPictureMemory = 512 << 20
)

// openFiles opens what keeps the files of records, and what filters make of them.
func (a *App) openFiles(ctx context.Context, r prometheus.Registerer) (err error) {
	counts, err := newPictureMetrics(r)
	if err != nil {
		return err
	}
	cache := a.cfg.PictureCache
	if cache == 0 {
		cache = DefaultPictureCache
	}
	memory := a.cfg.PictureMemory
	if memory == 0 {
		memory = DefaultPictureMemory
	}
	a.images, err = media.OpenImages(ctx, filepath.Join(a.cfg.DataDir, "pictures"), media.ImagesOptions{
		Logger: a.cfg.Logger, Now: a.cfg.Now, MaxBytes: cache, Memory: memory, Count: counts.count,
	})
	if err != nil {
		return err
	}
	a.files = media.NewLibrary(filepath.Join(a.cfg.DataDir, "uploads"), media.Options{Logger: a.cfg.Logger, Now: a.cfg.Now, Images: a.images})
	return nil
}

func (a *App) closeFiles() error {
	var err error
	if a.files != nil {
		err = a.files.Close()
	}
	if a.images != nil {
		err = errors.Join(err, a.images.Close())
	}
	return err
}

// pictureMetrics count what becomes of the pictures that image filters are asked for.
type pictureMetrics struct {
	pictures *prometheus.CounterVec
	seconds  prometheus.Counter
}

func newPictureMetrics(r prometheus.Registerer) (*pictureMetrics, error) {
	m := &pictureMetrics{
		pictures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "svc_pictures_total", Help: "Pictures of image filters by what became of them: kept, made, refused, busy, failed.",
		}, []string{"outcome"}),
		seconds: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "svc_picture_seconds_total", Help: "Seconds that image filters took, with what they waited for.",
		}),
	}
	for _, outcome := range []string{"kept", "made", "refused", "busy", "failed"} {
		m.pictures.WithLabelValues(outcome)
	}
	return m, errors.Join(r.Register(m.pictures), r.Register(m.seconds))
}

func (m *pictureMetrics) count(outcome string, took time.Duration) {
	m.pictures.WithLabelValues(outcome).Inc()
	m.seconds.Add(max(took, 0).Seconds())
}
