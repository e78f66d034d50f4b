package interference_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"image"
	"image/color"
	"image/png"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/media"
)

// picture is the content of a file.
type picture struct {
	data []byte
	hash string
}

// pictures is how many there are.
const pictures = 8

// allPictures makes them once: each has another color, and another length.
var allPictures = sync.OnceValue(func() (all [pictures]picture) {
	for i := range all {
		img := image.NewNRGBA(image.Rect(0, 0, 4, 4+i))
		for p := range img.Pix {
			img.Pix[p] = byte(p * i)
		}
		img.Set(0, 0, color.White)
		var b bytes.Buffer
		if err := png.Encode(&b, img); err != nil {
			panic(err)
		}
		sum := sha256.Sum256(b.Bytes())
		all[i] = picture{b.Bytes(), hex.EncodeToString(sum[:])}
	}
	return all
})

func pictureOf(n int) picture { return allPictures()[n%pictures] }

// dataURL is a picture as a body brings it.
func dataURL(n int) string {
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(pictureOf(n).data)
}

// files has the files of a service.
func (w *world) files(log *slog.Logger, now func() time.Time) *media.Library {
	images, err := media.OpenImages(w.t.Context(), w.t.TempDir(), media.ImagesOptions{Logger: log, Now: now, MaxBytes: 1 << 20})
	if err != nil {
		w.t.Fatal(err)
	}
	l := media.NewLibrary(w.uploads, media.Options{Logger: log, Now: now, Images: images})
	w.t.Cleanup(func() {
		for _, err := range []error{l.Close(), images.Close()} {
			if err != nil {
				w.t.Error(err)
			}
		}
	})
	return l
}

func (w *world) dropFiles() {
	if err := os.RemoveAll(filepath.Join(w.uploads, w.project.Namespace, "items")); err != nil {
		w.t.Fatal(err)
	}
}

// putItem stores an item with its files: one that is seen with it, one that is seen where the name lets it, and one that
// nobody sees. Those that the caller does not see are any, or none.
func (w *world) putItem(c *caller, rnd *rand.Rand, id bson.ObjectID, f face) {
	d := append(c.item(rnd, id, f), bson.E{Key: "pic", Value: w.file(id, "pic", f.parts)})
	if f.name == "a" {
		d = append(d, bson.E{Key: "shot", Value: w.file(id, "shot", f.n)})
	} else if rnd.IntN(4) > 0 {
		d = append(d, bson.E{Key: "shot", Value: w.file(id, "shot", rnd.IntN(pictures))})
	}
	if rnd.IntN(4) > 0 {
		d = append(d, bson.E{Key: "proof", Value: w.file(id, "proof", rnd.IntN(pictures))})
	}
	w.put("items", d)
}

// file puts a file in place, as an upload would, and gives what the record has of it.
func (w *world) file(id bson.ObjectID, field string, n int) bson.D {
	p, name := pictureOf(n), field+".png"
	folder := filepath.Join(w.uploads, w.project.Namespace, "items", id.Hex(), field)
	at := filepath.Join(folder, name)
	for _, do := range []func() error{
		func() error { return os.MkdirAll(folder, 0o700) },
		func() error { return os.WriteFile(at, p.data, 0o600) },
		func() error { return os.Chtimes(at, began, began) },
	} {
		if err := do(); err != nil {
			w.t.Fatal(err)
		}
	}
	return bson.D{
		{Key: "src", Value: "/api/v1" + base + "items/" + id.Hex() + "/" + field + "/" + name},
		{Key: "path", Value: name},
		{Key: "size", Value: int64(len(p.data))},
		{Key: "type", Value: "image/png"},
		{Key: "hash", Value: p.hash},
	}
}
