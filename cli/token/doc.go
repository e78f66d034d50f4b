// Package token holds svcctl token: personal access tokens for programs.
package token
