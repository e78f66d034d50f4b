// Package user holds svcctl user: the people and programs that may log in.
package user
