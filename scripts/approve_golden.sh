#!/usr/bin/env bash
# Takes over what the commands of tests/golden print now as approved, writes the tables of policies/README.md that tests
# keep, and shows what changed. Look at the difference before committing it. Argument: a build folder with fragsim_tests
# (default: build/release).
set -euo pipefail
cd "$(dirname "$0")/.."
FRAGSIM_APPROVE=1 "${1:-build/release}/tests/fragsim_tests" '[golden],[written]'
git --no-pager diff --stat -- tests/golden policies/README.md
git status --short -- tests/golden
