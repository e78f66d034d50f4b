package remote

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/svcctl/svc/pkg/embedding"
)

// Numbers is a dense vector in JSON: a list with at least one number, and nothing else in it. A null, which is how some
// servers write what is no number, is an error and not a zero.
type Numbers []float32

// UnmarshalJSON implements json.Unmarshaler.
func (n *Numbers) UnmarshalJSON(raw []byte) error {
	if bytes.IndexByte(raw, 'n') >= 0 {
		return errors.New("a vector has a null in it")
	}
	var list []float32
	if err := json.Unmarshal(raw, &list); err != nil {
		return err
	}
	if len(list) == 0 {
		return errors.New("a vector is empty")
	}
	*n = list
	return nil
}

// Vectors gives the vectors of n texts out of an answer that has to have as many, none of them null.
func Vectors(list []Numbers, n int) ([]embedding.Vector, error) {
	if len(list) != n {
		return nil, fmt.Errorf("%d vectors for %d texts", len(list), n)
	}
	out := make([]embedding.Vector, n)
	for i, dense := range list {
		if dense == nil {
			return nil, fmt.Errorf("vector %d is missing", i)
		}
		out[i].Dense = dense
	}
	return out, nil
}
