package snapshot_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/svcctl/svc/pkg/snapshot"
)

// The same records are the same file, whatever was compressed before them: equal files of two snapshots are one on the disk.
func TestCompressedAlike(t *testing.T) {
	t.Parallel()
	var texts [][]byte
	for i, size := range []int{0, 1, 50, 3000, 2 << 20, 50, 3000, 1 << 20} {
		var text bytes.Buffer
		for n := 0; text.Len() < size; n++ {
			fmt.Fprintf(&text, `{"_id":"%06d","title":"a text of %d words","n":%d}`+"\n", n, n*i%97, n%7)
		}
		texts = append(texts, text.Bytes())
	}
	together, err := snapshot.Compressed(texts...)
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range texts {
		alone, err := snapshot.Compressed(text)
		if err != nil || !bytes.Equal(together[i], alone[0]) {
			t.Errorf("file %d of %d bytes is another behind others, %v", i, len(text), err)
		}
	}
}

func BenchmarkCompressed(b *testing.B) {
	text := bytes.Repeat([]byte(`{"_id":"1","title":"of a small collection"}`+"\n"), 20)
	for range b.N {
		if _, err := snapshot.Compressed(text, text, text, text, text, text, text, text); err != nil {
			b.Fatal(err)
		}
	}
}
