package api

// Scopes lists the system rights that can be granted to users, teams and tokens. Besides them there are, for each project,
// namespace.<ns> (all of the following), namespace.<ns>.<col>.read, .create, .update, .delete and
// namespace.<ns>._actions.<name>.read, .create.
func Scopes() []string {
	return []string{
		"project.read", "project.reload", "project.regenerate-search", "project.backup", "project.snapshot",
		"user.read", "user.create", "user.update", "user.delete", "org.read", "team.read", "audit.read", "llm.chat", "server.shutdown",
	}
}
