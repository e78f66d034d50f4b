// Package audit holds svcctl audit: who did what, and whether the log of it is intact.
package audit
