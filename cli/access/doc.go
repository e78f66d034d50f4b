// Package access holds svcctl access: who may do what, and why.
package access
