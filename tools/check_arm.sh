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

PACKAGES=(libc6-dev libstdc++-12-dev nlohmann-json3-dev libsimdjson-dev zlib1g-dev libyaml-cpp-dev libcli11-dev libspdlog-dev
  libfmt-dev libpcre2-dev libutf8proc-dev libgtest-dev libgmock-dev libboost1.81-dev libssl-dev libcurl4-openssl-dev
  libedit-dev liburing-dev libjs-marked libjs-katex node-prismjs)
folder=$PWD/build/arm64-packages
root=$folder/root

# apt works on separate files, so that the machine stays one of a single architecture.
fetch_packages() {
  rm -rf "$folder"
  mkdir -p "$folder/state/lists/partial" "$folder/cache/archives/partial" "$root"
  touch "$folder/status"
  printf '%s "%s";\n' APT::Architecture arm64 APT::Architectures arm64 Dir::State "$folder/state" \
    Dir::State::status "$folder/status" Dir::Cache "$folder/cache" > "$folder/apt.conf"
  APT_CONFIG=$folder/apt.conf apt-get update -qq
  APT_CONFIG=$folder/apt.conf apt-get install -y -qq --no-install-recommends --download-only "${PACKAGES[@]}" >/dev/null
  for package in "$folder"/cache/archives/*.deb; do dpkg -x "$package" "$root"; done
  # Links are meant for the root of a machine.
  find "$root" -type l -lname '/*' | while read -r link; do
    ln -sfrn "$root$(readlink "$link")" "$link"
  done
  rm -rf "$folder/cache"
  touch "$folder/done"
}

[ -f "$folder/done" ] || fetch_packages
[ -f build/arm64/build.ninja ] || cmake -S . -B build/arm64 -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_UNITY_BUILD=ON \
  -DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_TOOLCHAIN_FILE=cmake/arm64.cmake >/dev/null

run() {  # TEST [gtest option...]
  local test=$1
  shift
  ninja -C build/arm64 --quiet "$test"
  qemu-aarch64 -cpu max -L "$root" "build/arm64/bin/$test" --gtest_brief=1 "$@"
}

if [ $# -gt 0 ]; then
  run "$@"
else
  run platform_test --gtest_filter='Cpu*'
  run lossless_test --gtest_filter='Lossless.ASmallModelOnEveryTable'
  run kernels_test
fi
