package differ_test

// finding is a case that once differed, as Run prints it.
type finding struct{ name, text string }

func findings() []finding {
	return []finding{
		{
			"an upsert that replaces takes only the _id from its filter",
			`{"docs":[{"_id":{"$numberInt":"2"}}],"ops":[{"kind":"replace","filter":{"$and":[{"a.b.0":{},"a":"b"},{"_id":{"$numberInt":"7"}}]},"doc":{"c":true},"upsert":true}]}`,
		},
		{
			"an upsert that replaces, with a filter that says one path twice",
			`{"docs":[{"_id":{"$numberInt":"11"}}],"ops":[{"kind":"replace","filter":{"$and":[{"a.1":{},"$and":[{"a.1":{}}]},{"_id":{"$numberInt":"12"}}]},"doc":{"c":true},"upsert":true}]}`,
		},
		{
			"the position of what is returned after a change",
			`{"docs":[{"_id":{"$numberInt":"8"},"b":[{"$numberInt":"1"}]}],"ops":[{"kind":"replace","filter":{"b":{"$numberInt":"1"}},"project":{"b.$":true},"doc":{"b":[{"$numberInt":"1"}]},"return":"after"}]}`,
		},
		{
			"a sort by a list and by what is in it",
			`{"docs":[{"_id":{"$numberInt":"4"},"b":[[]]},{"_id":{"$numberInt":"5"},"b":[[{"c":{"$numberInt":"1"}}]]}],"ops":[{"kind":"find","sort":{"b":{"$numberInt":"-1"},"b.0.c":{"$numberInt":"-1"},"_id":{"$numberInt":"1"}}}]}`,
		},
		{
			"a sort by two elements of a list that are lists",
			`{"docs":[{"_id":{"$numberInt":"4"},"b":[[],[]]}],"ops":[{"kind":"find","sort":{"b.1.c":{"$numberInt":"1"},"b.0.c":{"$numberInt":"1"}}}]}`,
		},
		{
			"the position of a scalar, of nothing and of an element that an inclusion drops",
			`{"docs":[{"_id":{"$numberInt":"1"},"a":{"$numberInt":"5"}},{"_id":{"$numberInt":"2"},"a":[{"b":{"$numberInt":"1"}},{"$numberInt":"5"}]}],"ops":[` +
				`{"kind":"find","filter":{"a":{"$numberInt":"5"},"_id":{"$numberInt":"1"}},"project":{"a.$":true}},` +
				`{"kind":"find","filter":{"a":{"$numberInt":"5"}},"project":{"a.$":true,"x":true}},` +
				`{"kind":"find","filter":{"a":{"$numberInt":"5"}},"project":{"x.$":true}},` +
				`{"kind":"find","filter":{"a":{"$numberInt":"5"}},"project":{"a.b.$":true}},` +
				`{"kind":"find","filter":{"a.b":{"$numberInt":"1"}},"project":{"a.b.$":true}},` +
				`{"kind":"find","filter":{"_id":{"$numberInt":"2"}},"project":{"a.$":true}}]}`,
		},
		{
			"the position is that of the last condition as the filter has them",
			`{"docs":[{"_id":{"$numberInt":"5"},"a":[[false],[]]},{"_id":{"$numberInt":"17"},"a":[{"$numberDouble":"1.5"},[]]}],"ops":[` +
				`{"kind":"find","filter":{"a":{"$type":"array"},"$and":[{"a":[]}],"_id":{"$numberInt":"5"}},"project":{"a.$":true}},` +
				`{"kind":"find","filter":{"a":{"$mod":[{"$numberInt":"-1"},{"$numberInt":"0"}],"$gte":[]}},"project":{"a.$":true}}]}`,
		},
		{
			"an $elemMatch comes last in an inclusion and stays in its place in an exclusion",
			`{"docs":[{"_id":{"$numberInt":"1"},"a":[{"$numberInt":"1"},{"$numberInt":"2"}],"b":true,"c":{"$numberInt":"3"}}],"ops":[` +
				`{"kind":"find","project":{"a":{"$elemMatch":{"$gt":{"$numberInt":"1"}}},"b":true}},` +
				`{"kind":"find","project":{"a":{"$elemMatch":{"$gt":{"$numberInt":"1"}}},"b":false}},` +
				`{"kind":"find","project":{"a":{"$elemMatch":{"$gt":{"$numberInt":"1"}}},"c":{"$slice":{"$numberInt":"1"}}}}]}`,
		},
		{
			"a sort through lists by a position, beside other lists",
			`{"docs":[{"_id":{"$numberInt":"1"},"a":[[]],"b":[]},{"_id":{"$numberInt":"2"},"a":[[],{"b":[]}]}],"ops":[` +
				`{"kind":"find","filter":{"b":[]},"sort":{"b":{"$numberInt":"1"},"a.0":{"$numberInt":"1"}}},` +
				`{"kind":"find","filter":{"a.b":[]},"sort":{"a.0":{"$numberInt":"1"},"a.b.c":{"$numberInt":"1"}}},` +
				`{"kind":"find","filter":{"a.b":[]},"sort":{"a.0":{"$numberInt":"1"},"b.c":{"$numberInt":"1"}}}]}`,
		},
		{
			"a $mod by a whole number that is large and a double",
			`{"docs":[{"_id":{"$numberInt":"1"},"a":{"$numberInt":"1"}}],"ops":[` +
				`{"kind":"find","filter":{"a":{"$mod":[{"$numberDouble":"9.007199254740992E+15"},{"$numberLong":"1"}]}}}]}`,
		},
		{
			"an index on a position that a list does not have",
			`{"docs":[{"_id":{"$numberInt":"3"},"a":[{"1":null}]},{"_id":{"$numberInt":"4"},"a":[{"1":{"$numberInt":"7"}}]}],"indexes":[{"keys":{"a.1":{"$numberInt":"1"}},"shared":true}],"ops":[` +
				`{"kind":"find","filter":{"a.1":{"$numberInt":"7"}}},{"kind":"find","filter":{"a.1":null}},{"kind":"distinct","path":"a.1"}]}`,
		},
		{
			"a unique index on a position where there are lists",
			`{"docs":[{"_id":{"$numberInt":"1"},"a":[{"$numberInt":"0"},[{"$numberInt":"1"},{"$numberInt":"2"}]]}],` +
				`"indexes":[{"keys":{"a.1":{"$numberInt":"1"},"a":{"$numberInt":"1"}},"unique":true,"shared":true},{"keys":{"a.1":{"$numberInt":"-1"}},"unique":true,"shared":true}],"ops":[` +
				`{"kind":"insert","doc":{"_id":{"$numberInt":"2"},"a":[{"$numberInt":"3"},[{"$numberInt":"2"},{"$numberInt":"1"}]]}},` +
				`{"kind":"insert","doc":{"_id":{"$numberInt":"3"},"a":[{"$numberInt":"4"},[{"$numberInt":"1"},{"$numberInt":"2"}]]}},` +
				`{"kind":"insert","doc":{"_id":{"$numberInt":"4"},"a":[{"$numberInt":"5"},[]]}},` +
				`{"kind":"insert","doc":{"_id":{"$numberInt":"5"},"a":[{"$numberInt":"6"},{"$numberInt":"1"}]}},` +
				`{"kind":"find","filter":{"a.1":{"$gte":{"$minKey":1}}},"sort":{"a.1":{"$numberInt":"1"}}}]}`,
		},
		{
			"a condition beside the _id, in a batch",
			`{"docs":[{"_id":{"$numberInt":"1"},"a":{"$numberInt":"1"}}],"ops":[` +
				`{"kind":"batch","batch":[{"kind":"update","id":{"$numberInt":"1"},"update":{"$set":{"b":true}}},{"kind":"update","id":{"$numberInt":"1"},"if":{"a":{"$numberInt":"2"}},"update":{"$set":{"c":true}}}]},` +
				`{"kind":"each","batch":[{"kind":"update","id":{"$numberInt":"1"},"update":{"$set":{"b":true}}},{"kind":"update","id":{"$numberInt":"1"},"if":{"a":{"$numberInt":"2"}},"update":{"$set":{"c":true}}},{"kind":"delete","id":{"$numberInt":"9"}}]}]}`,
		},
		{
			"what a store makes up itself",
			`{"docs":[{"_id":{"$numberInt":"1"},"a":{"$timestamp":{"t":0,"i":0}},"b":[{"$timestamp":{"t":0,"i":0}}]}],"ops":[` +
				`{"kind":"update","filter":{"a":{"$numberInt":"5"}},"update":{"$set":{"b":{"$timestamp":{"t":0,"i":0}}}},"upsert":true},` +
				`{"kind":"replace","filter":{"a":{"$numberInt":"6"}},"doc":{"b":{"$timestamp":{"t":0,"i":0}}},"upsert":true,"return":"after"}]}`,
		},
	}
}
