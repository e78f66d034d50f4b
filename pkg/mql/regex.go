package mql

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql/pattern"
)

func compileRegexOperator(ops bson.D, path string) (Pred, error) {
	v, _ := document.Member(ops, "$regex")
	options := ""
	if o, ok := document.Member(ops, "$options"); ok {
		if options, ok = o.(string); !ok {
			return nil, bad("filter: %s: $options needs text", path)
		}
	}
	switch v := v.(type) {
	case string:
		return compileRegex(v, options, path)
	case bson.Regex:
		if v.Options != "" && options != "" {
			return nil, bad("filter: %s: options are given in both $regex and $options", path)
		}
		return compileRegex(v.Pattern, v.Options+options, path)
	default:
		return nil, bad("filter: %s: $regex needs text", path)
	}
}

func compileRegex(text, options, path string) (*Regex, error) {
	p, err := pattern.Compile(text, options)
	if err != nil {
		code := document.ServerCode(codeBadRegex)
		if _, _, ok := pattern.Flags(options); !ok {
			code = codeBadRegexOption
		}
		return nil, coded(code, bad("filter: %s: %s", path, errs.From(err).Message))
	}
	return &Regex{Pattern: text, Options: p.Options, re: p.RE, raw: p.PCRE, states: p.States}, nil
}
