// Package action holds svcctl action: what actions a project has, calling them, and their runs.
package action
