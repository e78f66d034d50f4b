#!/bin/sh
# make soak: the tests in which much happens at once, again and again with the race detector for the time given in
# minutes (10m), with new random seeds each time.
set -u
cd "$(dirname "$0")/.." || exit 1
minutes=${1:-10m}
minutes=${minutes%m}
end=$(($(date +%s) + minutes * 60))
round=0
bin=$(mktemp -d) || exit 1
trap 'rm -rf "$bin"' EXIT
"${GO:-go}" build -o "$bin/startmongo" ./pkg/store/mongotest/startmongo || exit 1
while [ "$(date +%s)" -lt "$end" ]; do
	round=$((round + 1))
	echo "== round $round"
	"$bin/startmongo" "${GO:-go}" test -race -count=1 -shuffle=on -timeout 9m ./pkg/store/... ./pkg/records/... \
		./pkg/controller/... ./pkg/dirwatch/... ./controllers/... ./pkg/httpapi/... ./pkg/app/... || exit 1
done
echo "$round rounds passed"
