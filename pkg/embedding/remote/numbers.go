package remote

import (
	"bytes"
	"encoding/json"
	"errors"
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
