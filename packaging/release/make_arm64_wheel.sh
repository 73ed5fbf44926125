#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a wheel for aarch64 from a wheel of this machine for the same CPython, as pip built it, without libraries. The cross
# build has the program and the extension module. Its packages have the libraries that manylinux does not promise.
# Usage: packaging/release/make_arm64_wheel.sh BUILD WHEEL FOLDER   (needs patchelf and wheel in PATH)
set -euo pipefail
build=$(realpath "$1") wheel=$(realpath "$2") output=$(realpath "$3")
source=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
root=$source/build/arm64-packages/root
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

wheel unpack -d "$scratch" "$wheel" >/dev/null
tree=$(echo "$scratch"/outrider-*)
module=$(find "$build" -name '_engine.*aarch64*.so')
[ -n "$module" ] || { echo "make_arm64_wheel: expected an extension module in $build; build its target _engine" >&2; exit 1; }
rm "$tree"/outrider/lib/_engine*.so
cp "$module" "$tree/outrider/lib/"
cp "$build/bin/outrider" "$tree/outrider/bin/outrider"
parts=("$tree/outrider/lib/$(basename "$module")" "$tree/outrider/bin/outrider")
aarch64-linux-gnu-strip "${parts[@]}"

# PEP 600 lets a wheel expect these of every machine.
promised='^(ld-linux-aarch64|libc|libm|libdl|libpthread|librt|libgcc_s|libstdc\+\+|libz|libresolv|libutil)\.so'
mkdir "$tree/outrider.libs"
while read -r library; do
  name=$(basename "$library")
  [[ $name =~ $promised ]] && continue
  install -m 755 "$library" "$tree/outrider.libs/$name"
  patchelf --set-rpath '$ORIGIN' "$tree/outrider.libs/$name"
done < <("$source/packaging/release/needed_libraries.sh" "$root" aarch64 "${parts[@]}")
for part in "${parts[@]}"; do patchelf --set-rpath '$ORIGIN/../../outrider.libs' "$part"; done

# The newest symbols that any file takes from the C library name the tag.
newest=$(find "$tree" -type f \( -name '*.so*' -o -path '*/bin/outrider' \) -exec readelf -V {} + 2>/dev/null |
  grep -o 'GLIBC_2\.[0-9]*' | sort -Vu | tail -n 1)
tag=manylinux_2_${newest#GLIBC_2.}_aarch64
sed -i "s/^Tag: \(.*\)-linux_x86_64$/Tag: \1-$tag/" "$tree"/outrider-*.dist-info/WHEEL
"$source/tools/check_paths.sh" "$tree"
wheel pack -d "$output" "$tree"
