#!/bin/sh
# make fuzz: REQUESTS (1000000) requests that compare services which differ in what callers may not see, the random ones of SEED
# (new ones each time); then every fuzz target, one after the other, for the time given (30s). Inputs that fail are kept under testdata.
set -u
cd "$(dirname "$0")/.." || exit 1
time=${1:-30s}
failed=
echo "== ./pkg/app/interference ${REQUESTS:=1000000} requests"
REQUESTS=$REQUESTS SEED=${SEED:-} "${GO:-go}" test ./pkg/app/interference -run '^TestNonInterference$/^embedded$' -count=1 -timeout 0 -v || failed=' interference'
for dir in $(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u); do
	for target in $(grep -h '^func Fuzz' "$dir"/*_test.go | sed 's/^func \(Fuzz[A-Za-z0-9_]*\).*/\1/'); do
		echo "== $dir $target"
		"${GO:-go}" test "$dir" -run '^$' -fuzz "^$target\$" -fuzztime "$time" || failed="$failed $dir:$target"
	done
done
[ -z "$failed" ] || { echo "failed:$failed" >&2; exit 1; }
