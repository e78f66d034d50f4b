// Package auth holds svcctl login, logout and whoami.
package auth
