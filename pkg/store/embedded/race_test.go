//go:build race

package embedded_test

// With the race detector pools drop what they hold at random, so allocations can't be counted.
const raceDetector = true
