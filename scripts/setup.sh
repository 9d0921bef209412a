#!/usr/bin/env bash
# Installs the packages that building fragsim needs and that are missing (Debian 12, Ubuntu 24.04 and later ones).
set -euo pipefail

packages=(g++ make cmake pkg-config libcli11-dev libfmt-dev nlohmann-json3-dev libzstd-dev zlib1g-dev libssl-dev
          libjs-dygraphs catch2 librapidcheck-dev python3)

if ! command -v apt-get >/dev/null; then
    cat >&2 <<'MSG'
setup.sh knows Debian and Ubuntu. Elsewhere, install: a C++20 compiler (g++ 12 or later), make, CMake 3.22 or later,
pkg-config, CLI11, fmt 9 or later, nlohmann/json 3.11, zstd, zlib, OpenSSL, dygraphs 2.2 (its dygraph.min.js and
dygraph.min.css), Catch2 (2.13 or 3), rapidcheck, Python 3 (only the benchmark and some tests use it); Chromium, if there
is one, for the test of the HTML report; then: cmake --preset release && cmake --build --preset release
MSG
    exit 1
fi

missing=()
for package in "${packages[@]}"; do
    dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo)
echo "installing: ${missing[*]}" >&2
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
