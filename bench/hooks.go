package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const hookRounds = 24

// twoLines is the hook that everything is held against: it reads two members of the body and sets two.
const twoLines = `module.exports = (ctx) => {
  ctx.data.lang = ctx.data.lang || 'en'
  ctx.data.views = ctx.data.title.length + 1
}
`

// scripted is a collection that is the articles' with scripts.
type scripted struct {
	name, what  string // the collection, and its row
	config      string // what its file has more than that of the articles
	permissions string // "" are those of the articles
	file, text  string // the script
}

func scriptedCollections() []scripted {
	return []scripted{
		{"bound", "two-line post.bind", "hooks: { post: { bind: { type: javascript, file: bind.js } } }\n", "", "bind.js", twoLines},
		{
			"awaited", "async post.bind", "hooks: { post: { bind: { type: javascript, file: async.js } } }\n", "", "async.js",
			strings.Replace(twoLines, "(ctx)", "async (ctx)", 1),
		},
		{
			"stored", "post.create with a db call", "hooks: { post: { create: { type: javascript, file: create.js } } }\n", "", "create.js",
			"module.exports = async (ctx) => {\n  const author = await db.collection('authors').findOne(ctx.doc.author)\n  ctx.doc.lang = author.name.slice(0, 2)\n}\n",
		},
		{
			"filtered", "filter by script", "",
			"public:\n  filter: { type: javascript, file: filter.js }\n  methods: { get: true, post: { allow: true, bulk: true }, put: true }\nuser: { methods: { get: true } }\n", "filter.js",
			"module.exports = (ctx) => ctx.user ? {} : { active: true }\n",
		},
	}
}

// install writes a collection beside the articles of the project that s is going to serve.
func (c scripted) install(s *server) error {
	files := map[string]string{c.file: c.text}
	more := func(text string) string { return text + c.config }
	if c.permissions != "" {
		permissions := c.name + "-permissions.yaml"
		files[permissions] = c.permissions
		more = func(text string) string { return strings.Replace(text, "public.yaml", permissions, 1) + c.config }
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(s.projectDir(), name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return s.addCollection("articles", c.name, more)
}

// measureHooks compares creates that run a script, and lists that a script filters, with those that do not.
func measureHooks(ctx context.Context, o options) (err error) {
	s, err := newServer(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.remove()) }()
	for _, c := range scriptedCollections() {
		if err := c.install(s); err != nil {
			return err
		}
	}
	if err := s.start(ctx, "/readyz"); err != nil {
		return err
	}
	a, err := seed(ctx, s, 2000)
	if err != nil {
		return err
	}
	plain := operations(a)
	creates, lists := []operation{plain[2]}, []operation{plain[1]}
	for _, c := range scriptedCollections() {
		with := *a
		with.collection = c.name
		if with.ids, err = a.fill(ctx, s, c.name, 2000, a.article); err != nil {
			return err
		}
		list, create := operations(&with)[1], operations(&with)[2]
		list.name, create.name = list.name+", "+c.what, create.name+", "+c.what
		if c.permissions == "" {
			creates = append(creates, create)
		} else {
			lists = append(lists, list)
		}
	}
	for _, ops := range [][]operation{lists, creates} { // before the creates have made one collection larger than the other
		if err := printCosts(ctx, s, ops, o); err != nil {
			return err
		}
	}
	return nil
}

// printCosts runs operations by turns, and prints what each costs more than the first.
func printCosts(ctx context.Context, s *server, ops []operation, o options) error {
	runs, err := compare(ctx, s, ops, hookRounds, o.duration/4, nil)
	if err != nil {
		return err
	}
	var w strings.Builder
	w.WriteString("\trequests/s\ttimes\tp50 ms\tp99 ms\tCPU µs/request\tmore\tquartiles\t\n")
	for i, op := range ops {
		perSecond, cpu := column(runs[i], perSecondOf), column(runs[i], cpuOf)
		more := make([]float64, len(cpu))
		for round := range cpu {
			more[round] = cpu[round] - runs[0][round].CPU
		}
		slices.Sort(more)
		fmt.Fprintf(&w, "%s\t%.0f\t%.2f\t%.2f\t%.2f\t%.0f\t%+.0f\t%+.0f to %+.0f\t\n", op.name,
			median(perSecond), median(ratios(perSecond, column(runs[0], perSecondOf))),
			median(column(runs[i], p50Of)), median(column(runs[i], p99Of)), median(cpu), median(more), more[len(more)/4], more[len(more)*3/4])
	}
	return printTable(w.String() + "\n")
}
