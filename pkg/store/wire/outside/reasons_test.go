package outside_test

// failRules are the reasons for which tests fail, the first that fits. What meets none of them is not to fail.
func failRules() []rule {
	const (
		unified    = "^unified"
		compared   = "compared with"
		expects    = "what it expects"
		difference = "a deliberate difference: "
	)
	return []rule{
		{unified, "", `collation' is not supported`, difference + "no collation"},
		{unified, "", `create\.(capped|clusteredIndex|timeseries|expireAfterSeconds|pipeline|viewOn)|collMod`, "collections have one option: none is capped, clustered, a time series or a view, or has a validator"},
		{unified, "", `showExpandedEvents`, "change streams tell of documents, drops and renames, and of nothing else"},
		{unified, "", `"operationType": expected value "update", got "replace"`, "an update by a pipeline is told as the replacement that it is to the store"},
		{unified, "dots_and_dollars", `begins with \$`, difference + "no field of a replacement begins with $"},

		{compared, "CompatMod/", "", difference + "filter-mod"},
		{compared, "ReplacementDoc/|Replace(Empty|Null|Simple)|EmptyDocument", "", difference + "unchanged-not-modified"},
		{"", "EmptyKey", "", difference + "filter-paths"},
		{compared, "CompatSize|CompatElementType", "", difference + "filter-size, filter-type"},
		{compared, "PositionalOperator", "51246", "a code that tells two failures of the position $ apart"},
		{"", "", `is not less than "64"|is too long`, "the suite makes a name that is too long for itself"},
		{"", "Capped|Compact", "", "collections have one option: none is capped, clustered, a time series or a view, or has a validator"},
		{"", "", `create\.capped`, "collections have one option: none is capped, clustered, a time series or a view, or has a validator"},
		{"", "Bitwise", "", "no $bitsAllSet, $bitsAllClear, $bitsAnySet, $bitsAnyClear"},
		{"", "ShowRecordID", "", "documents have no record ids"},
		{"", "CommentQuery", "", "no $comment in filters"},
		{"", "CollectionName|DatabaseName", "", "names are those that a store takes"},
		{"", "Explain", "", "explain tells nothing here (it is asked for what FerretDB alone tells)"},
		{"", "RegexErrors", "", difference + "regular expressions are RE2"},
		{expects, "DiffErrorMessages|GetParameter|ServerStatus|Replication|Diagnostic|GetLog|HostInfo|BuildInfo|ClientMetadata|Connection", "", "about another server: its parameters, logs and figures"},
		{"", "Stats|DataSize|DBStats", "", "figures of another engine, and bounds of scale"},
		{expects, "ListDatabases", "TotalSize", "a store in memory takes no disk"},
		{expects, "ListCollections", "", "collections have one option: none is capped, clustered, a time series or a view, or has a validator"},
		{expects, "CollectionUUID", "", "the UUID of a collection is that of its name"},
		{expects, "Logout|SupportedMechs", "", "users are not made by the endpoint"},
		{expects, "PositionalOperator", "31394|16410|51247", "a code that tells two failures of the position $ apart"},
		{expects, "Regex", "", difference + "filter-stored-regex"},
		{compared, "CreateIndexes|DropIndexes|RenameCollection|ListIndexes|ListCollections", "", "the answer to a faulty definition: another code"},
	}
}

// skipRules are the reasons for which suites leave out tests, as far as they are worth telling apart.
func skipRules() []rule {
	return []rule{
		{"", "", mongodDown, mongodDown},
		{"", "", "^" + mongodFails + "$", mongodFails},
		{"", "", `min server version|minimum server version|server version|schema version|max server version`, "for other versions of the server"},
		{"", "", `topolog|sharded|load-balanced|single`, "for clusters of another kind"},
		{"", "", `Skipping for MongoDB|MongoDB`, "for FerretDB alone"},
		{"", "", `DRIVERS-|GODRIVER-|not support|unsupported|doesn't support`, "not to be had by the Go driver"},
	}
}
