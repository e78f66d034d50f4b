package archive_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/snapshot/archive"
)

// frame makes one of a header and blocks, with the checksum of what they hold.
func frame(t *testing.T, h zstd.Header, holds string, blocks ...string) string {
	t.Helper()
	h.HasCheckSum = !h.Skippable
	out, err := h.AppendTo(nil)
	if err != nil {
		t.Fatal(err)
	}
	text := string(out) + strings.Join(blocks, "")
	if h.HasCheckSum {
		sum := archive.Frames([]byte(holds + "\x00"[min(1, len(holds)):])) // of one chunk at most
		text += string(sum[len(sum)-4:])
	}
	return text
}

// rawBlock and runOf make blocks; the last has bit 0 set.
func rawBlock(body string, last int) string { return blockHead(len(body)<<3|last) + body }

func zero(n int) string { return strings.Repeat("\x00", n) }

func runOf(n int, c byte, last int) string { return blockHead(n<<3|1<<1|last) + string([]byte{c}) }

func blockHead(bits int) string {
	return string(binary.LittleEndian.AppendUint32(nil, uint32(bits))[:3])
}

// zeroFrame holds a MiB of zeros in less than 60 bytes.
func zeroFrame(t *testing.T) string {
	t.Helper()
	blocks := make([]string, 8)
	for i := range blocks {
		blocks[i] = runOf(128<<10, 0, i/7)
	}
	return frame(t, zstd.Header{SingleSegment: true, FrameContentSize: 1 << 20}, zero(1<<20), blocks...)
}

// TestS54Bombs has streams of few bytes that hold many.
func TestS54Bombs(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	zeros := zero(64 * mib)
	bomb := manifestOf(t, entryOf("a", zeros))
	ours := string(archive.Frames([]byte(file(archive.ManifestName, bomb) + string(archive.Header("a", 64*mib))))) // both are of whole blocks
	few := 0
	for _, tt := range []struct {
		name, stream, want string
	}{
		{"64 MiB of zeros in 4 KiB", ours + strings.Repeat(zeroFrame(t), 64), "the backup holds more than 100 times its own bytes"},
		{"before the manifest is whole", string(archive.Frames(archive.Header(archive.ManifestName, 200*mib))) + strings.Repeat(zeroFrame(t), 200), "the backup holds more than 100 times its own bytes"},
		{"a frame that is larger than it says", ours + frame(t, zstd.Header{SingleSegment: true, FrameContentSize: 10}, zero(256<<10), runOf(128<<10, 0, 0), runOf(128<<10, 0, 1)), "the backup is damaged"},
		{"a block that is larger than its frame", ours + frame(t, zstd.Header{SingleSegment: true, FrameContentSize: 10}, zero(11), runOf(11, 0, 1)), "the backup is damaged"},
		{"a frame that is smaller than it says", ours + frame(t, zstd.Header{SingleSegment: true, FrameContentSize: 10}, zero(9), runOf(9, 0, 1)), "the backup is damaged"},
		{"a frame of 1 MiB and a byte", ours + frame(t, zstd.Header{SingleSegment: true, FrameContentSize: mib + 1}, zero(1), runOf(1, 0, 1)), "the backup is not compressed as svcd does it"},
		{"a frame of all that there is", ours + frame(t, zstd.Header{SingleSegment: true, FrameContentSize: math.MaxUint64}, zero(1), runOf(1, 0, 1)), "the backup is not compressed as svcd does it"},
		{"a frame that does not say how large it is", ours + frame(t, zstd.Header{WindowSize: 1 << 10}, zero(1), runOf(1, 0, 1)), "the backup is not compressed as svcd does it"},
		{"a window of 2 GiB", ours + frame(t, zstd.Header{WindowSize: 1 << 31, FrameContentSize: 1000}, zero(1000), runOf(1000, 0, 1)), "the backup is not compressed as svcd does it"},
		{"no checksum", ours + strings.Replace(zeroFrame(t), "\xfd\xa4", "\xfd\xa0", 1), "the backup is not compressed as svcd does it"},
		{"a wrong checksum", ours + zeroFrame(t)[:len(zeroFrame(t))-1] + "!", "the backup is damaged"},
		{"a dictionary", ours + frame(t, zstd.Header{SingleSegment: true, FrameContentSize: 10, DictionaryID: 7}, zero(10), runOf(10, 0, 1)), "the backup is not compressed as svcd does it"},
		{"a frame to skip", ours + frame(t, zstd.Header{Skippable: true, SkippableSize: 4}, "", "evil"), "the backup is not compressed as svcd does it"},
		{"an empty frame", ours + frame(t, zstd.Header{SingleSegment: true}, "", rawBlock("", 1)), "the backup is not compressed as svcd does it"},
		{"blocks without end", ours + frame(t, zstd.Header{SingleSegment: true, FrameContentSize: mib}, "", strings.Repeat(rawBlock("", 0), mib)), "the backup is not compressed as svcd does it"},
		{"a block of an unknown type", ours + frame(t, zstd.Header{SingleSegment: true, FrameContentSize: 10}, "0123456789", blockHead(10<<3|3<<1|1)+"0123456789"), "the backup is damaged"},
		{"a reserved bit", ours + strings.Replace(zeroFrame(t), "\xfd\xa4", "\xfd\xac", 1), "the backup is not in the form that svcd writes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			invalid(t, []byte(tt.stream), tt.want)
		})
		if len(tt.stream) < 64<<10 {
			few++
		}
	}
	if few < 14 {
		t.Errorf("only %d of the streams are of few bytes", few)
	}
	if zeroFrame(t)[4] != 0xa4 {
		t.Errorf("the case of a reserved bit changes nothing: %x", zeroFrame(t)[4])
	}
}

// TestS54WhatCompressesWell: a backup that we make of such files is no bomb to ourselves, and is far smaller than they are.
func TestS54WhatCompressesWell(t *testing.T) {
	t.Parallel()
	want := content{"media/zeros": zero(40 << 20), "media/noise": noise(1 << 20), "media/zeros2": zero(60 << 20)}
	stream := backup(t, want)
	if len(stream) > 4<<20 {
		t.Errorf("a backup of 100 MiB of zeros and 1 MiB of noise has %d bytes", len(stream))
	}
	r, err := archive.Open(t.Context(), bytes.NewReader(stream), parse, archive.DefaultLimits())
	if err == nil {
		err = r.Extract(t.Context(), folder(t), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestS54Limits: each limit holds for both sides, and what is just within it goes through.
func TestS54Limits(t *testing.T) {
	t.Parallel()
	c := content{"a": "12345", "b": "1234567", "c": ""}
	stream := backup(t, c)
	manifest := int64(len(manifestOf(t, c.entries()...)))
	exact := archive.Limits{Files: 3, Bytes: 12, FileBytes: 7, ManifestBytes: manifest}
	if err := extract(t.Context(), bytes.NewReader(stream), folder(t), exact); err != nil {
		t.Error(err)
	}
	if err := archive.Write(t.Context(), &bytes.Buffer{}, snapshot(t, c), parse, exact, nil); err != nil {
		t.Error(err)
	}
	for _, tt := range []struct {
		name        string
		limits      archive.Limits
		read, write string
	}{
		{"files", archive.Limits{Files: 2, Bytes: 12, FileBytes: 7, ManifestBytes: manifest}, "has 3 files, and the limit is 2: raise the limit", "has 3 files, and the limit is 2: raise the limit"},
		{"bytes", archive.Limits{Files: 3, Bytes: 11, FileBytes: 7, ManifestBytes: manifest}, "has more than 11 bytes, which is the limit", "has more than 11 bytes, which is the limit"},
		{"bytes of a file", archive.Limits{Files: 3, Bytes: 12, FileBytes: 6, ManifestBytes: manifest}, `has a file "b" of 7 bytes, and the limit is 6`, `has a file "b" of 7 bytes, and the limit is 6`},
		{
			"manifest", archive.Limits{Files: 3, Bytes: 12, FileBytes: 7, ManifestBytes: manifest - 1},
			fmt.Sprintf("has a manifest of %d bytes, and the limit is %d", manifest, manifest-1), fmt.Sprintf("has a manifest of more than %d bytes", manifest-1),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			refuses(t, stream, tt.limits, errs.TooLarge, "backup_too_large", "the backup "+tt.read)
			var out bytes.Buffer
			err := archive.Write(t.Context(), &out, snapshot(t, c), parse, tt.limits, nil)
			public(t, err, errs.Limit, "snapshot_too_large", "the snapshot "+tt.write)
			if out.Len() > 0 {
				t.Errorf("%d bytes were written before that", out.Len())
			}
		})
	}
	huge := entryOf("a", "")
	huge.Size = math.MaxInt64
	other := huge
	other.Name = "b"
	text, err := announce(huge, other) // whose sum is less than zero
	if err != nil {
		t.Fatal(err)
	}
	l := archive.Limits{Files: 10, Bytes: math.MaxInt64, FileBytes: math.MaxInt64, ManifestBytes: 10}
	_, err = archive.Open(t.Context(), bytes.NewReader(stream0(t)), text, l)
	public(t, err, errs.TooLarge, "backup_too_large", "has more than 9223372036854775807 bytes")
}

func stream0(t *testing.T) []byte {
	t.Helper()
	return archive.Frames([]byte(file(archive.ManifestName, "[]")))
}

// TestS54Ends has streams that are cut off, or go on.
func TestS54Ends(t *testing.T) {
	t.Parallel()
	c := content{"a": noise(1000), "dir/b": "", strings.Repeat("l", 150): noise(1<<20 + 600)}
	whole := backup(t, c)
	for n := range len(whole) {
		if n%7 != 0 && n > 100 && n < len(whole)-100 || n > 3000 && n < len(whole)-2000 && n%40993 != 0 {
			continue // within a file
		}
		to := folder(t)
		err := extract(t.Context(), bytes.NewReader(whole[:n]), to, archive.DefaultLimits())
		public(t, err, errs.Invalid, "backup_truncated", "the backup ends too early: it did not arrive whole; download or send it again")
		if left := filesIn(t, to); len(left) > 0 {
			t.Fatalf("of %d bytes %v are left", n, left)
		}
		to.Close()
	}
	tar := archive.Unframed(backup(t, content{"a": "body", "dir/b": ""}))
	for n := 0; n < len(tar); n += 128 { // the compression is whole
		refuses(t, archive.Frames(tar[:n]), archive.DefaultLimits(), errs.Invalid, "backup_truncated", "the backup ends too early")
	}
	for name, more := range map[string]string{
		"a byte":                     "\x00",
		"a byte of a frame":          "\x28",
		"a block":                    strings.Repeat("\x00", 512),
		"the same again":             string(whole),
		"a file":                     string(archive.Frames([]byte(file("a", "x")))),
		"a block of zeros":           string(archive.Frames(make([]byte, 512))),
		"an empty frame":             frame(t, zstd.Header{SingleSegment: true}, "", rawBlock("", 1)),
		"a frame to skip":            frame(t, zstd.Header{Skippable: true, SkippableSize: 4}, "", "evil"),
		"a frame to skip of nothing": frame(t, zstd.Header{Skippable: true}, ""),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			invalid(t, slices.Concat(whole, []byte(more)), "the backup has data behind its end")
		})
	}
}

// prose compresses by all that zstd has: Huffman codes, sequences, and repeated offsets.
func prose() content {
	var text strings.Builder
	for i := range 60 {
		fmt.Fprintf(&text, `{"_id": {"$oid": "65f0c2a1b3d4e5f6071829%02x"}, "title": "Post %d of the blog", "views": {"$numberInt": "%d"}}`+"\n", i, i*i, i*7919%1000)
	}
	return content{"collections/posts.jsonl": text.String(), "config/project.yaml": "name: blog\n", "media/é": "x"}
}

// TestOneFlippedBit: whatever bit of a backup is another one, it is refused, or read as it was: zstd has a few bits that say nothing, such as those
// that fill up the last byte of a stream of codes, and ways to say a thing twice; what a frame holds has a checksum, and each file a SHA-256. All
// bits of archives of ours, of one that is stored, and of one that the zstd program has compressed. SOAK=1 flips all, else one of each byte.
func TestOneFlippedBit(t *testing.T) {
	t.Parallel()
	small := func() content { return content{"config/project.yaml": "name: blog\n", "media/é": "x"} }
	whole := backup(t, small())
	cut := archive.Unframed(whole)
	byZstd, err := os.ReadFile("testdata/zstd-1.5.tar.zst") // of what prose has, by: zstd -19
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name    string
		archive []byte
		content content
	}{
		{"ours", whole, small()},
		{"stored", slices.Concat(archive.Stored(cut[:1500]), archive.Stored(cut[1500:])), small()},
		{"ours, of prose", backup(t, prose()), prose()},
		{"the zstd program's", byZstd, prose()},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tc.content[archive.ManifestName] = manifestOf(t, tc.content.entries()...)
			to := folder(t)
			if err := extract(t.Context(), bytes.NewReader(tc.archive), to, archive.DefaultLimits()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.content, filesIn(t, to)); diff != "" {
				t.Fatal(diff)
			}
			var same []string
			to, bits := folder(t), 0
			for bit := range 8 * len(tc.archive) {
				if at := bit / 8; os.Getenv("SOAK") != "" || bit%8 == at%8 {
					bits++
					if flipped(t, to, tc.archive, bit, tc.content) {
						same = append(same, fmt.Sprintf("%d.%d", at, bit%8))
					}
				}
			}
			t.Logf("of %d bits that were flipped %d make no difference (byte.bit): %s", bits, len(same), strings.Join(same, " "))
			if len(same) > bits/20 {
				t.Errorf("%d of %d bits make no difference", len(same), bits)
			}
		})
	}
}

// flipped extracts an archive with a bit that is another one, and says whether it is taken: then it has what it had. The folder is empty behind it.
func flipped(t *testing.T, to *os.Root, good []byte, bit int, want content) (taken bool) {
	t.Helper()
	bad := bytes.Clone(good)
	bad[bit/8] ^= 1 << (bit % 8)
	err := extract(t.Context(), bytes.NewReader(bad), to, archive.DefaultLimits())
	got := filesIn(t, to)
	if e, ok := errors.AsType[*errs.Error](err); ok && e.Kind != errs.Internal {
		if len(got) > 0 {
			t.Errorf("byte %d, bit %d: %v is left", bit/8, bit%8, got)
		}
		return false
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("byte %d, bit %d: %v %s", bit/8, bit%8, err, diff)
	}
	for name := range got {
		top, _, _ := strings.Cut(name, "/")
		if err := to.RemoveAll(top); err != nil {
			t.Fatal(err)
		}
	}
	return true
}
