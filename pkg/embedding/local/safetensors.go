package local

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
)

const (
	maxHeaderBytes = 16 << 20 // of a safetensors file; that of a model with 100 layers has 200 KB
	maxTensorRank  = 8
)

// tensor is where one tensor of a safetensors file is.
type tensor struct {
	DType   string   `json:"dtype"`
	Shape   []int64  `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"` // bytes from the end of the header
}

// tensors reads a safetensors file: the length of its header in 8 bytes, the header in JSON, and the values.
type tensors struct {
	file io.ReaderAt
	data int64 // where the values begin, in bytes
	all  map[string]tensor
}

// openTensors reads the header of a file of size bytes. The tensors of one that is accepted lie inside the file one after
// the other, without overlap or gap, each as long as its type and shape say.
func openTensors(file io.ReaderAt, size int64) (*tensors, error) {
	var prefix [8]byte
	if _, err := file.ReadAt(prefix[:], 0); err != nil {
		return nil, fmt.Errorf("the length of the header: %w", err)
	}
	length := binary.LittleEndian.Uint64(prefix[:])
	if length > maxHeaderBytes || int64(length) > size-8 {
		return nil, fmt.Errorf("a header of %d bytes in a file of %d bytes: the most is %d", length, size, maxHeaderBytes)
	}
	header := make([]byte, length)
	if n, err := file.ReadAt(header, 8); n < len(header) {
		return nil, fmt.Errorf("the header: %w", err)
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(header, &raw); err != nil {
		return nil, fmt.Errorf("the header: %w", err)
	}
	delete(raw, "__metadata__")
	t := &tensors{file: file, data: 8 + int64(length), all: make(map[string]tensor, len(raw))}
	for name, value := range raw {
		var one tensor
		dec := json.NewDecoder(bytes.NewReader(value))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&one); err != nil {
			return nil, fmt.Errorf("tensor %q: %w", name, err)
		}
		t.all[name] = one
	}
	if err := t.check(size - t.data); err != nil {
		return nil, err
	}
	return t, nil
}

// check compares the places of all tensors with the bytes that there are.
func (t *tensors) check(size int64) error {
	names := make([]string, 0, len(t.all))
	for name := range t.all {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		x, y := t.all[a], t.all[b]
		return cmp.Or(cmp.Compare(x.Offsets[0], y.Offsets[0]), cmp.Compare(x.Offsets[1], y.Offsets[1]), cmp.Compare(a, b))
	})
	var at int64
	for _, name := range names {
		one := t.all[name]
		want, err := one.bytes()
		if err != nil {
			return fmt.Errorf("tensor %q: %w", name, err)
		}
		if one.Offsets[0] != at || one.Offsets[1] < at || one.Offsets[1]-at != want || one.Offsets[1] > size {
			return fmt.Errorf("tensor %q is said to be at %d to %d: it has %d bytes, what is before it ends at %d, and the file has %d",
				name, one.Offsets[0], one.Offsets[1], want, at, size)
		}
		at = one.Offsets[1]
	}
	if at != size {
		return fmt.Errorf("the tensors end at %d, and the file has %d bytes", at, size)
	}
	return nil
}

// bytes gives how long a tensor is by its type and shape.
func (t tensor) bytes() (int64, error) {
	widths := map[string]int64{
		"F64": 8, "I64": 8, "U64": 8, "F32": 4, "I32": 4, "U32": 4, "F16": 2, "BF16": 2, "I16": 2, "U16": 2, "I8": 1, "U8": 1, "BOOL": 1,
	}
	n, ok := widths[t.DType]
	if !ok {
		return 0, fmt.Errorf("type %q is unknown", t.DType)
	}
	if len(t.Shape) > maxTensorRank {
		return 0, fmt.Errorf("%d dimensions: the most is %d", len(t.Shape), maxTensorRank)
	}
	for _, d := range t.Shape {
		if d < 0 || d > 0 && n > math.MaxInt64/d {
			return 0, fmt.Errorf("shape %v", t.Shape)
		}
		n *= d
	}
	return n, nil
}

// read gives the values of a tensor of floats, which must have the shape that is asked for.
func (t *tensors) read(name string, shape ...int) ([]float32, error) {
	one, ok := t.all[name]
	if !ok {
		return nil, fmt.Errorf("there is no tensor %q", name)
	}
	if !slices.EqualFunc(one.Shape, shape, func(a int64, b int) bool { return a == int64(b) }) {
		return nil, fmt.Errorf("tensor %q has shape %v, and config.json asks for %v", name, one.Shape, shape)
	}
	var width int
	var decode func([]byte) float32
	switch one.DType {
	case "F32":
		width, decode = 4, func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }
	case "F16":
		width, decode = 2, func(b []byte) float32 { return fromHalf(binary.LittleEndian.Uint16(b)) }
	case "BF16":
		width, decode = 2, func(b []byte) float32 {
			return math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16)
		}
	default:
		return nil, fmt.Errorf("tensor %q is of type %s: only F32, F16 and BF16 are read", name, one.DType)
	}
	size := one.Offsets[1] - one.Offsets[0]
	out := make([]float32, 0, int(size)/width)
	buf := make([]byte, min(size, 1<<20))
	for at := one.Offsets[0]; at < one.Offsets[1]; {
		part := buf[:min(int64(len(buf)), one.Offsets[1]-at)]
		if n, err := t.file.ReadAt(part, t.data+at); n < len(part) {
			return nil, fmt.Errorf("tensor %q: %w", name, err)
		}
		at += int64(len(part))
		for i := 0; i < len(part); i += width {
			v := decode(part[i:])
			if v-v != 0 {
				return nil, fmt.Errorf("tensor %q has a value that is not finite: the file is damaged", name)
			}
			out = append(out, v)
		}
	}
	return out, nil
}

// fromHalf gives the value of an IEEE 754 half-precision number.
func fromHalf(h uint16) float32 {
	sign, exponent, fraction := uint32(h>>15)<<31, uint32(h>>10)&31, uint32(h)&1023
	switch exponent {
	case 0:
		v := float32(fraction) / (1 << 24)
		return math.Float32frombits(math.Float32bits(v) | sign)
	case 31:
		return math.Float32frombits(sign | 255<<23 | fraction<<13)
	default:
		return math.Float32frombits(sign | (exponent+112)<<23 | fraction<<13)
	}
}
