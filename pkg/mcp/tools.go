package mcp

import "slices"

// tools lists every tool, in the order of the interface. Adding one is a file's function, and a line here.
func tools() []*tool {
	return []*tool{
		documentsList(), documentGet(), documentsCount(), documentsFacet(), queueStatus(),
		documentCreate(), documentUpdate(), documentDelete(), fileRead(), actionCall(),
		projectsList(), projectGet(), collectionsList(), collectionDescribe(), actionsList(), actionDescribe(),
		jobsList(), openAPIGet(), systemMetaGet(), agentGuideGet(), assetsList(), assetRead(),
		usersList(), userGet(), userCreate(), userUpdate(), userDelete(),
		orgsList(), orgGet(), teamsList(), teamGet(), auditQuery(),
		projectReload(), regenerateSearch(), backupCreate(), snapshotsList(),
	}
}

// visible are the tools that clients are told of.
func visible(all []*tool, adminActions bool) []describedTool {
	out := make([]describedTool, 0, len(all))
	for _, t := range all {
		if !t.admin || adminActions {
			out = append(out, t.describe())
		}
	}
	return slices.Clip(out)
}

// Parameters that several tools have.
func namespaceParam() param {
	return param{"namespace", kindName, true, nil, "The project, by its namespace. projects_list has them."}
}

func collectionParam() param {
	return param{"collection", kindName, true, nil, "The collection, by its name. collections_list has them."}
}

func langParam() param {
	return param{"lang", kindText, false, nil, "The language of labels and descriptions, such as en or de-AT."}
}

func extraParam() param {
	return param{"extra", kindObject, false, nil, "Further query parameters that the collection declares, by name. collection_describe tells of them under meta.query."}
}

func filterParam() param {
	return param{"filter", kindObject, false, nil, `Which records, in MongoDB's query operators, such as {"status": "published", "views": {"$gte": 10}}.`}
}

func qParams() []param {
	return []param{
		{"q", kindText, false, nil, "Words to search for."},
		{"qName", kindText, false, nil, "The search to use, by name; else the collection's first. collection_describe tells of them."},
	}
}

func limitParam() param {
	return param{"limit", kindInteger, false, nil, "How many at most. The service has a limit of its own; truncated says that it was reached."}
}

func offsetParam() param {
	return param{"offset", kindInteger, false, nil, "How many to pass over."}
}

// digits has a limit or an offset be asked for as a text, as the interface has it for system models.
func digits(p param) param {
	p.kind = kindDigits
	return p
}

func idParam(of string) param {
	return param{"id", kindName, true, nil, "The id of the " + of + ": 24 hex digits."}
}

func dryRunParam() param {
	return param{"dryRun", kindBoolean, false, nil, "Check everything and tell what would be done, and do nothing."}
}

func maxAffectedParam() param {
	return param{"maxAffected", kindInteger, false, nil, "Refuse, before anything is done, to change more records than that."}
}

func ifMatchParam() param {
	return param{"ifMatch", kindDigits, false, nil, "The _rev that the one record must still have: refused with 412 if somebody has changed it since you read it. Not for filters."}
}
