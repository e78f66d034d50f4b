// Package schedule reads when something runs: five-field cron with an optional CRON_TZ= zone, @daily and its like, and
// "every 6h". It is pure: it computes times and starts nothing.
//
// Start reading at Parse. What does not live here: running anything, catching up after a restart and keeping two runs
// apart (controllers).
package schedule
