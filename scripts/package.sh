#!/bin/sh
# make package: what a release has, in dist, without publishing it. zig is the C compiler for all architectures: ZIG, the one in PATH, or that of
# the Python package ziglang, in an environment of its own below bin. TARGETS, such as linux_amd64, leaves the others out.
set -eu
cd "$(dirname "$0")/.."
goreleaser=github.com/goreleaser/goreleaser/v2@v2.16.0
ziglang=ziglang==0.17.1

if [ -z "${ZIG:-}" ]; then
	if command -v zig >/dev/null; then
		ZIG=zig
	else
		[ -x bin/zig/bin/python ] || python3 -m venv bin/zig
		bin/zig/bin/python -m pip install --quiet "$ziglang"
		ZIG="$PWD/bin/zig/bin/python -m ziglang"
	fi
fi
export ZIG
go=${GO:-go}
$go run $goreleaser check --quiet
if [ -n "${TARGETS:-}" ]; then
	export GGOOS="${TARGETS%_*}" GGOARCH="${TARGETS#*_}" # what --single-target of goreleaser builds
	exec $go run $goreleaser build --snapshot --clean --single-target
fi
exec $go run $goreleaser release --snapshot --clean --skip=publish,announce
