//go:build unix

package imagefilter_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/disintegration/imaging"

	"github.com/svcctl/svc/pkg/imagefilter"
	"github.com/svcctl/svc/pkg/schema"
)

// BenchmarkBeside makes a JPEG of 800 pixels of one of 4000×3000, by turns: by a filter, as PocketBase does it, and by
// vipsthumbnail where that is installed. It prints the medians of the time and of the processor time, and those of what each
// turn gave beside PocketBase: on a machine that does other things too, these are what can be compared.
//
//	go test ./pkg/imagefilter -run '^$' -bench Beside -benchtime 15x
func BenchmarkBeside(b *testing.B) {
	file := photo(b, 4000, 3000)
	ways := map[string]func() time.Duration{
		"svc":        bySelf(b, file, schema.ImageStep{Width: new(800.0), OutputType: "jpg"}),
		"svc-linear": bySelf(b, file, schema.ImageStep{Width: new(800.0), OutputType: "jpg", Resampling: "linear"}),
		"pocketbase": bySelfOf(func() { asPocketBase(b, file) }),
	}
	if vips, err := exec.LookPath("vipsthumbnail"); err == nil {
		ways["vips"] = byVips(b, vips, file)
	}
	wall, cpu := map[string][]float64{}, map[string][]float64{}
	for b.Loop() {
		for name, way := range ways {
			start := time.Now()
			cpu[name] = append(cpu[name], way().Seconds()*1000)
			wall[name] = append(wall[name], time.Since(start).Seconds()*1000)
		}
	}
	b.ReportMetric(0, "ns/op")
	for name := range ways {
		b.ReportMetric(median(wall[name]), name+"-ms")
		b.ReportMetric(median(cpu[name]), name+"-cpu-ms")
		b.ReportMetric(median(ratios(wall[name], wall["pocketbase"])), name+"-ratio")
		b.ReportMetric(median(ratios(cpu[name], cpu["pocketbase"])), name+"-cpu-ratio")
	}
}

func bySelf(b *testing.B, file []byte, step schema.ImageStep) func() time.Duration {
	f := compile(b, step)
	return bySelfOf(func() {
		if _, err := f.Apply(b.Context(), bytes.NewReader(file), imagefilter.Limits{}); err != nil {
			b.Fatal(err)
		}
	})
}

// bySelfOf gives the processor time that this process takes for it.
func bySelfOf(do func()) func() time.Duration {
	used := func() time.Duration {
		var u syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return func() time.Duration {
		before := used()
		do()
		return used() - before
	}
}

// asPocketBase is what its tools/filesystem does for a thumb of 800x0, from the file to the thumb's bytes.
func asPocketBase(b *testing.B, file []byte) {
	img, err := imaging.Decode(bytes.NewReader(file), imaging.AutoOrientation(true))
	if err != nil {
		b.Fatal(err)
	}
	var out bytes.Buffer
	if err := imaging.Encode(&out, imaging.Resize(img, 800, 0, imaging.Linear), imaging.JPEG); err != nil {
		b.Fatal(err)
	}
}

// byVips counts the start of the process, about 20 ms, too.
func byVips(b *testing.B, vips string, file []byte) func() time.Duration {
	dir := b.TempDir()
	source := filepath.Join(dir, "source.jpg")
	if err := os.WriteFile(source, file, 0o600); err != nil {
		b.Fatal(err)
	}
	return func() time.Duration {
		c := exec.CommandContext(b.Context(), vips, source, "--size", "800x", "-o", filepath.Join(dir, "thumb.jpg[Q=85]"))
		if out, err := c.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		return c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	}
}

func ratios(of, by []float64) []float64 {
	out := make([]float64, len(of))
	for i, v := range of {
		out[i] = v / by[i]
	}
	return out
}

func median(of []float64) float64 {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}
