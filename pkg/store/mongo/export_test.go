package mongo

import "time"

// SetTransactionTime makes transactions end sooner than after a minute.
func (s *Store) SetTransactionTime(d time.Duration) { s.txTime = d }

// SetSharded makes s take the ways that a router needs. They lead to the same on a replica set.
func (s *Store) SetSharded(sharded bool) { s.sharded = sharded }

// ReportProblems reads an answer to the command validate.
var ReportProblems = reportProblems
