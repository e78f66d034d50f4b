package local_test

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/embedding/local"
)

func TestTensors(t *testing.T) {
	t.Parallel()
	want := []float32{0, 1, -2, 0.5, 65504, 6.1035156e-05}
	for _, dtype := range []string{"F32", "F16", "BF16"} {
		t.Run(dtype, func(t *testing.T) {
			t.Parallel()
			in := want
			if dtype == "BF16" { // has fewer digits
				in = []float32{0, 1, -2, 0.5, 65280, 6.1035156e-05}
			}
			file := tensorsOf(dtype, map[string]values{"before": {[]int{2}, []float32{7, 7}}, "it": {[]int{2, 3}, in}, "zone": {[]int{0}, nil}})
			got, err := local.Tensor(file, "it", 2, 3)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(in, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			for name, shape := range map[string][]int{"it": {3, 2}, "before": {}, "nowhere": {2}} {
				if _, err := local.Tensor(file, name, shape...); err == nil {
					t.Errorf("%s %v is read", name, shape)
				}
			}
		})
	}
}

// TestHalf reads numbers of half precision that have no leading one, and those that are no numbers.
func TestHalf(t *testing.T) {
	t.Parallel()
	for bits, want := range map[uint16]float32{0x0001: 1.0 / (1 << 24), 0x83ff: -1023.0 / (1 << 24), 0x8000: float32(math.Copysign(0, -1)), 0x3555: 0.33325195} {
		got, err := local.Tensor(withHeader(`{"a":{"dtype":"F16","shape":[1],"data_offsets":[0,2]}}`, binary.LittleEndian.AppendUint16(nil, bits)), "a", 1)
		if err != nil || math.Float32bits(got[0]) != math.Float32bits(want) {
			t.Errorf("%04x is %v, want %v (%v)", bits, got, want, err)
		}
	}
	for _, bits := range []uint16{0x7c00, 0xfc00, 0x7e01} {
		_, err := local.Tensor(withHeader(`{"a":{"dtype":"F16","shape":[1],"data_offsets":[0,2]}}`, binary.LittleEndian.AppendUint16(nil, bits)), "a", 1)
		if err == nil || !strings.Contains(err.Error(), "not finite") {
			t.Errorf("%04x: %v", bits, err)
		}
	}
}

func TestDamagedTensors(t *testing.T) {
	t.Parallel()
	long := binary.LittleEndian.AppendUint64(nil, 1<<40)
	negative := binary.LittleEndian.AppendUint64(nil, 1<<63)
	for name, file := range map[string][]byte{
		"nothing":                   nil,
		"half a length":             {1, 0, 0},
		"a length beyond the file":  {200, 0, 0, 0, 0, 0, 0, 0, '{', '}'},
		"a length of a terabyte":    append(long, '{', '}'),
		"a length that is negative": append(negative, '{', '}'),
		"no header":                 withHeader("", nil),
		"no JSON":                   withHeader("{", nil),
		"an array":                  withHeader("[]", nil),
		"a tensor that is a number": withHeader(`{"a":1}`, nil),
		"a key that is unknown":     withHeader(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"more":1}}`, make([]byte, 4)),
		"a type that is unknown":    withHeader(`{"a":{"dtype":"F8","shape":[1],"data_offsets":[0,1]}}`, make([]byte, 1)),
		"offsets beyond the file":   withHeader(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, make([]byte, 4)),
		"offsets that go back":      withHeader(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}}`, make([]byte, 4)),
		"offsets below 0":           withHeader(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}}`, nil),
		"a shape of another size":   withHeader(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}`, make([]byte, 4)),
		"a shape below 0":           withHeader(`{"a":{"dtype":"F32","shape":[-1,-1],"data_offsets":[0,4]}}`, make([]byte, 4)),
		"a shape that overflows":    withHeader(`{"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}}`, nil),
		"a shape of nine":           withHeader(`{"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]}}`, make([]byte, 4)),
		"a gap":                     withHeader(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, make([]byte, 8)),
		"bytes behind":              withHeader(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, make([]byte, 5)),
		"an overlap": withHeader(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`,
			make([]byte, 4)),
	} {
		if _, err := local.ReadTensors(file); err == nil {
			t.Errorf("a file with %s is read", name)
		}
	}
}

func FuzzTensors(f *testing.F) {
	f.Add(tensorsOf("F32", map[string]values{"a": {[]int{2, 2}, []float32{1, 2, 3, 4}}}))
	f.Add(tensorsOf("F16", map[string]values{"a": {[]int{2}, []float32{1, 2}}, "b": {[]int{0}, nil}}))
	f.Add(withHeader(`{"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}}`, nil))
	f.Fuzz(func(t *testing.T, file []byte) {
		n, err := local.ReadTensors(file)
		if err == nil && 2*n > len(file) {
			t.Errorf("%d values in %d bytes", n, len(file))
		}
	})
}
