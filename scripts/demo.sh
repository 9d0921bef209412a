#!/usr/bin/env bash
# Installs what is missing, builds, and asks the main question of a bundled recording: a ViT training run that ended out
# of memory at 9.79 GiB. Why, and which setting would have carried it?
set -euo pipefail
cd "$(dirname "$0")/.."
bash scripts/setup.sh
{
    cmake --preset release -DFRAGSIM_TESTS=OFF
    cmake --build --preset release -j "$(nproc)"
} >&2
exec build/release/fragsim explain traces/samples/vit_multires.f70.pickle.gz --capacity 9.79GiB
