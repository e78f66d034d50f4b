package tui

import "github.com/svcctl/svc/cli/tui/frame"

// screens are those that there are, in the order of help. Their keys are the digits that they have for good.
func screens(editor Editor) []frame.Def {
	return []frame.Def{
		{Key: "1", Name: "projects", Title: "Projects: all that are registered", Open: newProjects},
		{Key: "2", Name: "project", Title: "Project: conditions, problems and events of one", Parent: "projects", Of: frame.OfProject, Open: newProject},
		{Key: "3", Name: "collections", Title: "Collections: what a project has, and what you may do with it", Parent: "project", Of: frame.OfProject, Open: newCollections},
		{Key: "4", Name: "documents", Title: "Documents: the records of a collection", Parent: "collections", Of: frame.OfCollection, Open: newDocuments(editor)},
		{Key: "5", Name: "jobs", Title: "Jobs: when they are due, what their last runs came to, and their logs", Parent: "project", Of: frame.OfProject, Open: newJobs},
		{Key: "6", Name: "snapshots", Title: "Snapshots: those that there are, and how far runs are that take, check and restore them", Parent: "project", Of: frame.OfProject, Open: newSnapshots},
		{Key: "7", Name: "search", Title: "Search: its indexes, and what makes vectors for them", Parent: "project", Of: frame.OfProject, Open: newSearch},
		{Key: "8", Name: "tokens", Title: "Tokens and users: who may do something here, and with what", Parent: "projects", Open: newAccounts},
		{Key: "9", Name: "audit", Title: "Audit: who did what, in a project or to the service itself", Parent: "project", Of: frame.OfAny, Open: newAudit},
		{Key: "0", Name: "events", Title: "Events: what the service does with a project, or with all, as it happens", Parent: "project", Of: frame.OfAny, Open: newEvents},
	}
}
