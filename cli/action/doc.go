// Package action holds svcctl action: what actions a project has, and calling them.
package action
