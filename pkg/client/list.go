package client

import (
	"context"
	"errors"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"strconv"

	"github.com/svcctl/svc/pkg/api"
)

// Query selects what a list gives. Zero members are not sent, so the service's defaults hold.
type Query struct {
	Filter     string // JSON
	Sort       string // such as "-publishedAt,title"
	Select     string // such as "title,seo.title" or "-body"
	Projection string
	Lookup     string // such as "author,tags", or JSON
	Limit      int    // of one page; 0 is the collection's default
	Offset     int
	After      string // Next of the page before
	Count      bool   // ask for Total
	Lang       string // the language of the records
	Q          string // words to look for
	QName      string // the search that looks for them; "": the first
	Highlight  bool   // with _highlights
	Explain    bool   // with _explain
	Extra      url.Values
}

// ofList is q with a parameter that only lists have: without any, a singleton gives its record.
func (q Query) ofList() Query {
	if q.Filter+q.Sort+q.After+q.Q == "" && q.Limit == 0 && q.Offset == 0 && !q.Count {
		q.Extra = maps.Clone(q.Extra)
		if q.Extra == nil {
			q.Extra = url.Values{}
		}
		q.Extra.Set(api.ParamOffset, "0")
	}
	return q
}

// Values gives q as query parameters.
func (q Query) Values() url.Values {
	v := url.Values{}
	maps.Copy(v, q.Extra)
	for name, value := range map[string]string{
		api.ParamFilter:     q.Filter,
		api.ParamSort:       q.Sort,
		api.ParamSelect:     q.Select,
		api.ParamProjection: q.Projection,
		api.ParamLookup:     q.Lookup,
		api.ParamAfter:      q.After,
		api.ParamLang:       q.Lang,
		api.ParamQ:          q.Q,
		api.ParamQName:      q.QName,
	} {
		if value != "" {
			v.Set(name, value)
		}
	}
	if q.Limit > 0 {
		v.Set(api.ParamLimit, strconv.Itoa(q.Limit))
	}
	if q.Offset > 0 {
		v.Set(api.ParamOffset, strconv.Itoa(q.Offset))
	}
	for name, on := range map[string]bool{api.ParamCount: q.Count, api.ParamHighlight: q.Highlight, api.ParamExplain: q.Explain} {
		if on {
			v.Set(name, "true")
		}
	}
	return v
}

// errStuck guards against a server whose pages never end.
var errStuck = errors.New("the service says that there is more, but gives neither items nor a cursor")

// list reads one page.
func list[T any](ctx context.Context, c *Client, path string, q Query) (*api.List[T], error) {
	var page api.List[T]
	_, err := c.do(ctx, call{method: http.MethodGet, path: path, query: q.Values(), out: &page})
	if err != nil {
		return nil, err
	}
	return &page, nil
}

// all reads page after page by cursor, and yields items as they come. An error ends it.
func all[T any](ctx context.Context, c *Client, path string, q Query) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		for {
			page, err := list[T](ctx, c, path, q)
			if err != nil {
				yield(zero, err)
				return
			}
			for _, item := range page.Items {
				if !yield(item, nil) {
					return
				}
			}
			if !page.HasMore {
				return
			}
			if page.Next == "" || page.Next == q.After {
				yield(zero, errStuck)
				return
			}
			q.After, q.Offset, q.Count = page.Next, 0, false
		}
	}
}
