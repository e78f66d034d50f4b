#!/bin/sh
# make soak: the tests in which much happens at once, again and again with the race detector for the time given in
# minutes (10m), with new random seeds each time; and in each round many faults of the embedded store: power cuts, kills,
# failing calls, changed bytes; and of a MongoDB of three: elections, kills, servers that hang; and outages of a MongoDB under a
# service, of which it prints how long readiness took to tell. Then a
# minute of 1,000 reloads at 500 requests a second, 100 ends of the process under requests, and a minute in which a service must
# not grow, of which it prints goroutines, files and heap, on both stores. First of all schemathesis, where it is installed
# (make agents), holds a service against the OpenAPI documents of the samples for ten minutes. A failure prints the SEED that repeats it.
set -u
cd "$(dirname "$0")/.." || exit 1
minutes=${1:-10m}
minutes=${minutes%m}
end=$(($(date +%s) + minutes * 60))
round=0
bin=$(mktemp -d) || exit 1
trap 'rm -rf "$bin"' EXIT
"${GO:-go}" build -o "$bin/startmongo" ./pkg/store/mongotest/startmongo || exit 1
clients=${MCP_CLIENTS:-$PWD/bin/agents}
if [ -x "$clients/venv/bin/schemathesis" ]; then
	MCP_CLIENTS=$clients SCHEMATHESIS=10m "${GO:-go}" test -count=1 -v -timeout 30m -run '^TestOpenAPIHolds$' ./pkg/app >"$bin/log" || { cat "$bin/log"; exit 1; }
	grep ' requests$' "$bin/log"
else
	echo "there is no schemathesis in MCP_CLIENTS: TestOpenAPIHolds is skipped, make agents installs it"
fi
while [ "$(date +%s)" -lt "$end" ]; do
	round=$((round + 1))
	echo "== round $round"
	CUTS=500 KILLS=20 IOERRORS=20 FLIPS=200 LISTS=20 TURMOIL=50 "${GO:-go}" test -count=1 -v -timeout 30m -run '^TestR[0-9]' ./pkg/store/embedded |
		tee "$bin/log" | grep -E '^ +[a-z]+_test.go|^--- FAIL' || true
	if grep -q -e '^--- FAIL' -e '^FAIL' -e '^panic' "$bin/log"; then
		cat "$bin/log"
		exit 1
	fi
	SOAK=4 "$bin/startmongo" "${GO:-go}" test -race -count=1 -shuffle=on -timeout 30m ./pkg/store/... ./pkg/records/... \
		./pkg/controller/... ./pkg/dirwatch/... ./pkg/operation/... ./pkg/jobs/... ./controllers/... ./pkg/httpapi/... ./pkg/app/... || exit 1
	FAULTS=20 "${GO:-go}" test -count=1 -v -timeout 30m -run '^TestR10' ./pkg/app >"$bin/log" || { cat "$bin/log"; exit 1; }
	grep 'the database' "$bin/log"
	SOAK=1 "${GO:-go}" test -count=1 -timeout 60m -run '^TestR8ReloadStorm$|^TestR15Drain$|^TestThreeInstances$|^TestIndexBuildsHandOver$|^TestR18' ./cmd/svcd || exit 1
	SOAK=1 "${GO:-go}" test -count=1 -v -timeout 60m -run '^TestR19Growth$' ./cmd/svcd >"$bin/log" || { cat "$bin/log"; exit 1; }
	grep 'goroutines, then' "$bin/log"
done
echo "$round rounds passed"
