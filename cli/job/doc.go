// Package job holds svcctl job: the scheduled scripts of a project, and their runs.
package job
