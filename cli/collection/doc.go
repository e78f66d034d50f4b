// Package collection holds svcctl collection: what a project has, and what you may do with it.
package collection
