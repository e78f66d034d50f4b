// Package server holds svcctl server: what is done to the service as a whole.
package server
