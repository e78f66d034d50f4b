#!/bin/sh
# What svcctl takes of the time of a command, beside what the service takes: the median of RUNS (31) runs of each, in milliseconds. SVCCTL_SERVER and
# SVCCTL_ADMIN_TOKEN_FILE say which service; it has to serve the sample blog. Usage: sh scripts/latency.sh [SVCCTL]
set -eu
svcctl=${1:-bin/svcctl}
runs=${RUNS:-31}
cache=$(mktemp -d)
trap 'rm -rf "$cache"' EXIT
export XDG_CACHE_HOME="$cache"

measure() { # NAME COMMAND…
  name=$1
  shift
  "$@" > /dev/null # which has to work
  for _ in $(seq "$runs"); do
    from=$(date +%s%N)
    "$@" > /dev/null 2>&1
    echo $((($(date +%s%N) - from) / 10000))
  done | sort -n | awk -v name="$name" '{ t[NR] = $1 } END { printf "%8.1f ms  %s\n", t[int((NR + 1) / 2)] / 100, name }'
}

completed() { # a press of the tab key, with what is kept or without
  [ "$1" = kept ] || rm -rf "$cache"/*
  shift
  "$svcctl" __complete "$@"
}

measure 'a program that does nothing' true
measure 'version --client' "$svcctl" version --client
measure '--help' "$svcctl" --help
measure 'version' "$svcctl" version
measure 'project list' "$svcctl" project list
measure 'project list -o jsonpath' "$svcctl" project list -o 'jsonpath={.items[*].namespace}'
measure 'project list --jq' "$svcctl" project list --jq '.items[].namespace'
measure 'status' "$svcctl" status
measure 'check' "$svcctl" check
measure 'doc list, 20 records' "$svcctl" doc list blog articles --limit 20
measure 'the tab key: namespaces, first' completed new doc list ''
measure 'the tab key: namespaces, again' completed kept doc list ''
measure 'the tab key: fields, first' completed new doc list blog articles --sort ''
measure 'the tab key: -o' completed kept doc list blog articles -o ''
