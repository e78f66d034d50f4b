// Package config holds svcctl config: the contexts on this machine. It talks to no server.
package config
