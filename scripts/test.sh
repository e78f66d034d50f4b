#!/bin/sh
# make test: vet, lint where the linter is installed, and all tests, with the race detector where there is a C compiler.
# One MongoDB serves the tests of all packages (pkg/store/mongotest says where it comes from). Without one, the tests
# that need it are left out with a line that says so; with CI=true that is a failure.
#   PKGS='./pkg/mql ./pkg/records/...' make test    tests some packages
#   TESTFLAGS='-run Bulk -v' make test              passes flags to go test
set -u
cd "$(dirname "$0")/.." || exit 1
go=${GO:-go}
pkgs=${PKGS:-./...}

race=
if [ "$("$go" env CGO_ENABLED)" = 1 ] && command -v "$("$go" env CC | cut -d ' ' -f 1)" >/dev/null 2>&1; then
	# The engine of the store has zstd in C where there is cgo. What is released has it in Go, and so do the tests.
	race='-race -tags=pebblegozstd'
else
	echo 'tested without the race detector: it needs a C compiler and CGO_ENABLED=1' >&2
fi

# Compilers and tests look for garbage half as often: some memory for some time.
export GOGC="${GOGC:-200}"

# With -race, vet looks at what go test compiles anyway; without it, all is compiled twice.
# shellcheck disable=SC2086 # lists of packages and flags are meant to split
"$go" vet $race $pkgs || exit 1
if [ "$pkgs" = ./... ] && [ -z "${TESTFLAGS:-}" ]; then # svcctl is released for Windows, too, where none of this runs
	CGO_ENABLED=0 "$go" run ./scripts/typecheck windows ./cmd/svcctl || exit 1
fi
if command -v golangci-lint >/dev/null 2>&1; then
	# shellcheck disable=SC2086
	golangci-lint run $pkgs || exit 1
else
	echo 'not linted: golangci-lint is not installed (make lint says how)' >&2
fi

bin=$(mktemp -d) || exit 1
trap 'rm -rf "$bin"' EXIT
# Without cgo it is compiled as what is tested below without the race detector, and as the programs are that are released.
CGO_ENABLED=0 "$go" build -o "$bin/startmongo" ./pkg/store/mongotest/startmongo || exit 1
# The race detector triples what it takes to start a program. Tests that start svcctl some thousand times, and those that kill svcd again and
# again, start them as they are released.
if [ -n "$race" ] && [ "$pkgs" = ./... ]; then
	CGO_ENABLED=0 "$go" build -ldflags '-w -X main.version=test' -o "$bin/released/" ./cmd/svcctl || exit 1
	CGO_ENABLED=0 "$go" build -ldflags=-w -o "$bin/svcd" ./cmd/svcd || exit 1
	export SVCCTL_RELEASED="$bin/released" SVCD_RELEASED="$bin/svcd"
fi

# MongoDB and the tests wait for a disk at every write: their data is in memory where there is room. What they show is the same, for who is
# killed loses nothing that the system has, and a power cut is made by what stands in for the disk (R2). What go builds stays on the disk: it is
# told by a file, since the tests would have a variable, too.
if [ -w /dev/shm ] && [ "$(df -Pk /dev/shm | awk 'NR == 2 {print $4}')" -gt 4000000 ]; then
	cat "$("$go" env GOENV)" >"$bin/env" 2>/dev/null
	echo "GOTMPDIR=${GOTMPDIR:-${TMPDIR:-/tmp}}" >>"$bin/env"
	unset GOTMPDIR
	export GOENV="$bin/env" TMPDIR=/dev/shm
fi
# The race detector holds each program for a second before it ends, in case that something goes on: the tests hold that nothing does (R19).
export GORACE="atexit_sleep_ms=0 ${GORACE:-}"
# Tests wait much, for leases, intervals, and processes to end: two packages more than there are processors keep these busy. All that go
# test would vet has been vetted, and no debugger looks at what is linked: stacks and reports of races do without what one needs.
jobs=$(($(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2) + 2))
tested=$pkgs
computing=
if [ "$pkgs" = ./... ]; then
	# What only computes, one call after the other, takes the race detector seven times as long, and tells it nothing: what has many callers at
	# once are the packages that use these.
	if [ -n "$race" ] && [ -z "${TESTFLAGS:-}" ]; then
		computing="./pkg/document ./pkg/mql ./pkg/mql/expr ./pkg/mql/pipeline ./pkg/schema ./pkg/script/guard ./pkg/search/analysis ./pkg/snapshot/archive"
	fi
	# The longest begin first, so that none of them is what all wait for at the end.
	tested="./pkg/app ./cmd/svcd ./cli ./pkg/snapshot ./pkg/store/embedded"
	for pkg in $("$go" list -f '.{{slice .ImportPath (len .Module.Path)}}' ./...); do
		case " $tested $computing " in *" $pkg "*) ;; *) tested="$tested $pkg" ;; esac
	done
fi
# shellcheck disable=SC2086
"$bin/startmongo" "$go" test $race -ldflags=-w -vet=off -p $jobs -timeout 50m ${TESTFLAGS:-} $tested || exit 1
if [ -n "$computing" ]; then
	export CGO_ENABLED=0
	# shellcheck disable=SC2086
	"$bin/startmongo" "$go" test -vet=off -p $jobs -timeout 20m $computing || exit 1
	# The race detector has the first make few requests, and allocates where the second counts.
	"$go" test -timeout 20m -vet=off -run '^TestNonInterference$/^embedded$' ./pkg/app/interference || exit 1
	"$go" test -timeout 20m -vet=off -run '^TestAllocations$' ./pkg/store/embedded || exit 1
fi
