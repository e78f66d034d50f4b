package output

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Order is what --sort-by asks for. The zero one leaves lists as they are.
type Order struct {
	path jsonPath
	desc bool
	use  *OrderUse // nil: nobody asks
}

// OrderUse says what became of an order.
type OrderUse struct {
	List  bool // there was a list to sort
	Found bool // which had no items, or one that has something at the path
}

// ParseOrder reads a path in the items of lists, as kubectl has it (.createdAt, {.name} or name), with - before it for descending.
func ParseOrder(text string, use *OrderUse) (Order, error) {
	path, desc := strings.CutPrefix(text, "-")
	p, err := newJSONPath(path)
	if err != nil {
		return Order{}, err
	}
	return Order{path: p, desc: desc, use: use}, nil
}

// sorted gives a result in the order. A value that is no list with as many items as the table has rows stays as it is.
func (o Order) sorted(r Result) (Result, error) {
	if o.path.expr == "" {
		return r, nil
	}
	raw, err := encode(r.Value)
	if err != nil {
		return r, err
	}
	var whole map[string]json.RawMessage
	var items []json.RawMessage
	if json.Unmarshal(raw, &whole) != nil || json.Unmarshal(whole["items"], &items) != nil || whole["items"] == nil {
		return r, nil
	}
	keys := make([]any, len(items))
	for i, item := range items {
		if keys[i], err = o.key(item); err != nil {
			return r, err
		}
	}
	at := make([]int, len(items))
	for i := range at {
		at[i] = i
	}
	slices.SortStableFunc(at, func(a, b int) int {
		if o.desc {
			a, b = b, a
		}
		return compare(keys[a], keys[b])
	})
	if r.Table != nil && len(r.Table.rows) == len(items) {
		r.Table = &Table{columns: r.Table.columns, rows: picked(r.Table.rows, at)}
	}
	if len(r.Names) == len(items) {
		r.Names = picked(r.Names, at)
	}
	if r.Value, err = withItems(raw, picked(items, at)); err != nil {
		return r, err
	}
	if o.use != nil {
		o.use.List = true
		o.use.Found = o.use.Found || len(keys) == 0 || slices.ContainsFunc(keys, func(key any) bool { return key != nil })
	}
	return r, nil
}

// key is what an item is sorted by: the first thing that is at the path.
func (o Order) key(item json.RawMessage) (any, error) {
	dec := json.NewDecoder(strings.NewReader(string(item)))
	dec.UseNumber()
	var value any
	if err := dec.Decode(&value); err != nil {
		return nil, fmt.Errorf("sort: %w", err)
	}
	results, err := o.path.find(numbers(value))
	if err != nil {
		return nil, &ShapeError{"--sort-by", err}
	}
	for _, v := range flat(results) {
		if v.IsValid() {
			return v.Interface(), nil
		}
	}
	return nil, nil
}

// compare puts what is not there first, then numbers by their size, then everything else by its text.
func compare(a, b any) int {
	fa, aNumber := number(a)
	fb, bNumber := number(b)
	switch {
	case a == nil || b == nil:
		return cmp.Compare(btoi(a != nil), btoi(b != nil))
	case aNumber && bNumber:
		return cmp.Compare(fa, fb)
	case aNumber || bNumber:
		return cmp.Compare(btoi(!aNumber), btoi(!bNumber))
	}
	return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b))
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func number(v any) (float64, bool) {
	switch rv := reflect.ValueOf(v); rv.Kind() { //nolint:exhaustive // those that numbers makes
	case reflect.Int64:
		return float64(rv.Int()), true
	case reflect.Float64:
		return rv.Float(), true
	}
	return 0, false
}

func picked[T any](list []T, at []int) []T {
	out := make([]T, len(at))
	for i, from := range at {
		out[i] = list[from]
	}
	return out
}

// withItems puts other items into a list, whose other members stay, in their order.
func withItems(raw json.RawMessage, items []json.RawMessage) (json.RawMessage, error) {
	list, err := encode(items)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	if _, err := dec.Token(); err != nil {
		return nil, fmt.Errorf("encode the output: %w", err)
	}
	var b strings.Builder
	for sep := "{"; dec.More(); sep = "," {
		name, err := dec.Token()
		if err != nil {
			return nil, fmt.Errorf("encode the output: %w", err)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, fmt.Errorf("encode the output: %w", err)
		}
		if name == "items" {
			value = list
		}
		key, err := encode(name)
		if err != nil {
			return nil, err
		}
		b.WriteString(sep + string(key) + ":" + string(value))
	}
	b.WriteByte('}')
	return json.RawMessage(b.String()), nil
}
