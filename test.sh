#!/usr/bin/env bash
# Passes the tests of all modules of this repository.
#
#   ./test.sh                       what a change can break, in minutes
#   ./test.sh -short                while one works: no other processes, no race detector
#   ./test.sh -full                 everything, all with the race detector
#   ./test.sh -full -budget=20m     of that what was run longest ago, for so long
#   ./test.sh -histories=1000       so many random histories in each test that follows some
#   ./test.sh -run TestMove -count=1 ./internal/...   flags of go test, and packages
#
# It needs Go, and a C compiler for the race detector. A result is shown as soon as there is
# one; at the end stands what was skipped and why, and which packages took longest.
set -euo pipefail
cd "$(dirname "$0")"
if ! command -v go >/dev/null; then
  echo "test.sh: Go is not installed" >&2
  exit 1
fi
go build -o .cache/bin/test ./internal/test/run
exec .cache/bin/test "$@"
