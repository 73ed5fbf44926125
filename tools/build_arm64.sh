#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds targets for ARM in build/arm64 with Debian's cross compiler. The target _engine, the module for CPython 3.11, needs a
# Python 3.11 with nanobind: WHEEL_PYTHON. Usage: tools/build_arm64.sh TARGET...
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tools/fetch_arm64.sh
options=()
if [[ " $* " == *" _engine "* ]]; then
  python=$(realpath -s "$(command -v "${WHEEL_PYTHON:?"_engine needs a Python 3.11 with nanobind"}")")
  options=(-DOUTRIDER_PYTHON=ON "-DPython_EXECUTABLE=$python" "-Dnanobind_DIR=$("$python" -m nanobind --cmake_dir)"
    "-DPython_INCLUDE_DIR=$PWD/build/arm64-packages/root/usr/include/python3.11" -DNB_SUFFIX=.cpython-311-aarch64-linux-gnu.so)
fi
if [ ! -f build/arm64/build.ninja ] || [ ${#options[@]} -gt 0 ]; then
  cmake -S . -B build/arm64 -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_UNITY_BUILD=ON -DCMAKE_CXX_COMPILER_LAUNCHER=ccache \
    -DCMAKE_TOOLCHAIN_FILE=cmake/arm64.cmake "${options[@]}" >/dev/null
fi
ninja -C build/arm64 --quiet "$@"
