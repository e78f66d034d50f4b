// Package mcp is the door for agents: JSON-RPC 2.0 in the words of the Model Context Protocol, revision 2024-11-05.
//
// A tool is a request of the REST API in other words: its file says how its arguments become one, and the Door carries it out as it would a
// request from outside, with the same credential, limits, hooks and rights. So a tool can do nothing that REST refuses, and this package decides
// only what is the protocol's own: how messages look, which arguments there are, the number of an error, and how long an answer may be.
//
// Credentials, HTTP and the route are pkg/httpapi's. Start at Server.Answer, then tools.go, which lists all tools.
package mcp
