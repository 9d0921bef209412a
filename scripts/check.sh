#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test. Tests that need the full recordings (../shared) or a GPU say so
# and are skipped without them.
set -euo pipefail
cd "$(dirname "$0")/.."
bash scripts/setup.sh
cmake --preset release -DFRAGSIM_TESTS=ON >/dev/null
cmake --build --preset release -j "$(nproc)" -- --no-print-directory
exec ctest --preset release -j "$(nproc)"
