#!/bin/sh
# Builds torch_peer with the PyTorch and the CUDA headers of this machine; not part of the normal build.
#   tests/gpu/peers/build.sh /tmp/torch_peer
#   /tmp/torch_peer --alloc-conf max_split_size_mb:128 --limit 10507691622 --repetitions 20 run.txt >peer.json
# PYTHON names the interpreter that has torch. Only c10 is linked, so that the program starts at once.
set -eu
site=$("${PYTHON:-python3}" -c 'import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])')
version=$("${PYTHON:-python3}" -c 'import importlib.metadata as m; print(m.version("torch"))')
nvcc=$(command -v nvcc || true)
# The wheels beside PyTorch do not hold all of the runtime's headers.
headers=$(find -L ${nvcc:+"$(dirname "$(readlink -f "$nvcc")")/.."} "${CUDA_HOME:-/usr/local/cuda}" "$site/../nvidia" \
  -path '*/include/crt/host_config.h' 2>/dev/null | head -n 1)
# The very libraries that c10 loads. Where g++ would link its C++ library statically, there would be two, and the first
# message of an out of memory ends in a bad free of a locale.
libraries=$(ldd "$site/lib/libc10_cuda.so" | awk '/libcudart|libstdc/ { print $3 }')
"${CXX:-g++}" ${CXXFLAGS:-} -O2 -std=c++20 -DFRAGSIM_TORCH_VERSION="\"$version\"" -isystem "$site/include" \
  -isystem "${headers%/crt/host_config.h}" "$(dirname "$0")/torch_peer.cpp" -o "${1:-torch_peer}" \
  -L"$site/lib" -lc10 -lc10_cuda $libraries -Wl,--allow-shlib-undefined \
  -Wl,-rpath,"$site/lib:$(dirname "$(echo "$libraries" | grep cudart)")"
