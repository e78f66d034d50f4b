package archive

import (
	"bytes"
	"io"
)

// Header is what stands before a file in the tar.
var Header = header

// Stored is a frame that has a chunk as it is.
func Stored(chunk []byte) []byte { return stored(Frames(chunk), chunk) }

// Frames compresses a tar as Write does it.
func Frames(tar []byte) []byte {
	var out bytes.Buffer
	f, err := newFrameWriter(&out)
	if err == nil {
		_, err = f.Write(tar)
	}
	if err == nil {
		err = f.finish()
	}
	if err != nil {
		panic(err)
	}
	return out.Bytes()
}

// Unframed reads what is in frames, as far as they can be read.
func Unframed(frames []byte) []byte {
	f, err := newFrameReader(bytes.NewReader(frames))
	if err != nil {
		panic(err)
	}
	tar, _ := io.ReadAll(f)
	return tar
}

// Unstored tells the kind of an error of the disk.
var Unstored = unstored
