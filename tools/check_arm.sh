#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds tests for ARM with Debian's cross compiler and runs them under qemu-user: rows that do not depend on other rows,
# products of integers with the bits of x86-64, equal outputs with and without speculation.
# Usage: tools/check_arm.sh [TEST [gtest option...]]
# Without arguments it runs the tests of processors, losslessness of a small model on every table, and the tests of kernels,
# the last for a quarter of an hour. Exits with 77, and says why, without the cross compiler or qemu. Debian's packages for
# arm64 are unpacked into build/arm64-packages.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
for program in aarch64-linux-gnu-g++ qemu-aarch64; do
  command -v $program >/dev/null ||
    { echo "skipped: there is no $program (apt-get install g++-aarch64-linux-gnu qemu-user)" >&2; exit 77; }
done

root=$PWD/build/arm64-packages/root

run() {  # TEST [gtest option...]
  local test=$1
  shift
  tools/build_arm64.sh "$test"
  qemu-aarch64 -cpu max -L "$root" "build/arm64/bin/$test" --gtest_brief=1 "$@"
}

if [ $# -gt 0 ]; then
  run "$@"
else
  run platform_test --gtest_filter='Cpu*'
  run lossless_test --gtest_filter='Lossless.ASmallModelOnEveryTable'
  run kernels_long_test
  run kernels_test
fi
