// Package retention decides which snapshots of a profile are kept and which are pruned, and says why. It is pure: it reads
// no clock and no disk, and removes nothing.
//
// A policy means what restic's means (its documentation of forget): a snapshot is kept if any rule keeps it. A rule such as
// keepDaily: 7 goes from the newest snapshot to the oldest, and keeps the newest of each of the first seven days that have
// one. Hours, days, ISO weeks, months and years are those of the calendar in the project's zone. A rule that finds fewer than
// its count keeps the oldest snapshot, too, so that the history grows until the rule is full. keepWithin keeps what is older
// than the newest snapshot by less than the span.
//
// It is other than restic's in two things. These are kept whatever the policy says: pinned ones, the newest that is verified,
// and those dated in the future, which no rule counts, so that a clock that was wrong once crowds out nothing. And where
// clocks are set back by more than an hour, or over midnight, an hour or day that comes again after another one is the same.
//
// One that is damaged counts for nothing: no rule counts it, so that it takes the place of none that is whole. It goes when a whole one of its age would,
// and not before one that is newer was verified: until then it may be the best that there is.
//
// What is kept stays kept when the rest is gone: pruning in steps, in any order and after any interruption, ends where
// pruning at once does. A larger count or span never removes more.
//
// Start reading at Decide. What does not live here: how a policy is written and checked (pkg/schema), and the removal
// itself (pkg/snapshot).
package retention
