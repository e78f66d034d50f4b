package differ

import "go.mongodb.org/mongo-driver/v2/bson"

// commands are those of an op, but for the end of a batch. What chooses by _id looks for that first, so that it can be
// told whether there was one.
func (o *Op) commands(coll string) []bson.D {
	var commands []bson.D
	switch {
	case o.Kind == Batch || o.Kind == Each:
		for i := range o.Batch {
			commands = append(commands, o.Batch[i].commands(coll)...)
		}
	case o.ID != nil && !o.Upsert:
		exists := Op{Kind: Find, Filter: bson.D{{Key: "_id", Value: o.ID}}}
		commands = append(commands, exists.command(coll), o.command(coll))
	default:
		commands = append(commands, o.command(coll))
	}
	return commands
}

// transaction has what the commands of one say beside what they do.
type transaction int64

func (t transaction) begin(commands []bson.D) {
	for i := range commands {
		commands[i] = append(commands[i], t.fields()...)
	}
	commands[0] = append(commands[0], bson.E{Key: "startTransaction", Value: true})
}

// end is its last command.
func (t transaction) end(name string) bson.D {
	return append(append(bson.D{{Key: name, Value: 1}}, t.fields()...), bson.E{Key: "$db", Value: "admin"})
}

func (t transaction) fields() bson.D {
	return bson.D{
		{Key: "lsid", Value: bson.D{{Key: "id", Value: bson.Binary{Subtype: bson.TypeBinaryUUID, Data: []byte("differ's session")}}}},
		{Key: "txnNumber", Value: int64(t)},
		{Key: "autocommit", Value: false},
	}
}

// replies is how many commands an op is, but for the end of a batch.
func (o *Op) replies() int {
	switch {
	case o.Kind == Batch || o.Kind == Each:
		n := 0
		for i := range o.Batch {
			n += o.Batch[i].replies()
		}
		return n
	case o.ID != nil && !o.Upsert:
		return 2
	default:
		return 1
	}
}

func dumping(coll string) bson.D {
	all := Op{Kind: Find, Sort: bson.D{{Key: "_id", Value: 1}}}
	return all.command(coll)
}

// hint keeps the server from its indexes: it gives less where a sparse one serves {a: {$lte: MaxKey}}, say.
func (o *Op) hint() bson.E {
	if o.planned {
		return bson.E{Key: "hint", Value: bson.D{}}
	}
	return bson.E{Key: "hint", Value: bson.D{{Key: "$natural", Value: 1}}}
}

// orEmpty is for commands that need an object.
func orEmpty(d bson.D) bson.D {
	if d == nil {
		return bson.D{}
	}
	return d
}

func (o *Op) command(coll string) bson.D {
	switch o.Kind {
	case Find:
		return append(append(bson.D{{Key: "find", Value: coll}}, o.findArgs()...),
			o.hint(), bson.E{Key: "batchSize", Value: 1 << 20}, bson.E{Key: "singleBatch", Value: true}) // all in one reply
	case Count:
		return bson.D{{Key: "count", Value: coll}, {Key: "query", Value: orEmpty(o.Filter)}, {Key: "limit", Value: o.Limit}, o.hint()}
	case Distinct:
		return bson.D{{Key: "distinct", Value: coll}, {Key: "key", Value: o.Path}, {Key: "query", Value: orEmpty(o.Filter)}}
	case Insert:
		return bson.D{{Key: "insert", Value: coll}, {Key: "documents", Value: bson.A{o.Doc}}}
	}
	if o.Return != "" {
		return o.findAndModify(coll)
	}
	if o.Kind == Delete {
		limit := 1
		if o.Many {
			limit = 0
		}
		return bson.D{{Key: "delete", Value: coll}, {Key: "deletes", Value: bson.A{
			bson.D{{Key: "q", Value: o.query()}, {Key: "limit", Value: limit}, o.hint()},
		}}}
	}
	u := bson.D{
		{Key: "q", Value: o.query()},
		{Key: "u", Value: o.change()},
		{Key: "multi", Value: o.Many},
		{Key: "upsert", Value: o.Upsert},
		o.hint(),
	}
	if o.ArrayFilters != nil {
		u = append(u, bson.E{Key: "arrayFilters", Value: o.ArrayFilters})
	}
	return bson.D{{Key: "update", Value: coll}, {Key: "updates", Value: bson.A{u}}}
}

// query chooses the documents of a write.
func (o *Op) query() bson.D {
	if o.ID == nil {
		return orEmpty(o.Filter)
	}
	q := bson.D{{Key: "_id", Value: o.ID}}
	if o.If != nil {
		q = append(q, bson.E{Key: "$and", Value: bson.A{o.If}})
	}
	return q
}

func (o *Op) change() bson.D {
	if o.Kind == Replace {
		return orEmpty(o.Doc)
	}
	return orEmpty(o.Update)
}

// orAfter is for a page behind a document: what comes before it is cut off when the reply is read, and it has to be there
// for that.
func (o *Op) orAfter() bson.D {
	return bson.D{{Key: "$or", Value: bson.A{orEmpty(o.Filter), bson.D{{Key: "_id", Value: bson.D{{Key: "$eq", Value: o.After}}}}}}}
}

func (o *Op) findArgs() bson.D {
	filter := orEmpty(o.Filter)
	args := bson.D{{Key: "sort", Value: orEmpty(o.Sort)}}
	if o.After != nil {
		filter = o.orAfter()
	} else {
		args = append(args, bson.E{Key: "skip", Value: o.Skip}, bson.E{Key: "limit", Value: o.Limit})
	}
	if o.Project != nil {
		args = append(args, bson.E{Key: "projection", Value: o.Project})
	}
	return append(args, bson.E{Key: "filter", Value: filter})
}

func (o *Op) findAndModify(coll string) bson.D {
	c := bson.D{{Key: "findAndModify", Value: coll}, {Key: "query", Value: o.query()}, o.hint()}
	if len(o.Sort) > 0 {
		c = append(c, bson.E{Key: "sort", Value: o.Sort})
	}
	if o.Project != nil {
		c = append(c, bson.E{Key: "fields", Value: o.Project})
	}
	if o.Kind == Delete {
		return append(c, bson.E{Key: "remove", Value: true})
	}
	c = append(c, bson.E{Key: "update", Value: o.change()}, bson.E{Key: "upsert", Value: o.Upsert},
		bson.E{Key: "new", Value: o.Return == "after"})
	if o.ArrayFilters != nil {
		c = append(c, bson.E{Key: "arrayFilters", Value: o.ArrayFilters})
	}
	return c
}
