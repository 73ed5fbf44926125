#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a file with all that tools/device_check.sh needs on another machine with a GPU: programs, their libraries and the
# loader, small models. There it is unpacked, and tools/device_check.sh runs in its folder.
# LLAMA_BENCH=FILE puts a llama-bench that was built with CUDA into it, too (bench/README.md).
# Usage: tools/make_device_bundle.sh BUILD OUTPUT.tar.xz
set -euo pipefail
build=$1 output=$2
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
max_bytes=$((40 << 20))
models=(outrider-small outrider-draft outrider-eagle3 outrider-medusa outrider-mtp outrider-moa)

if ! grep -q '^OUTRIDER_NVCC:.*=/' "$build/CMakeCache.txt"; then
  echo "make_device_bundle: $build was configured where nvcc is not, so its programs have no code for GPUs" >&2
  exit 1
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder"/{bench,bin,lib,models,tests/data,tools}
for program in outrider device_check; do
  strip -o "$folder/bin/$program" "$build/bin/$program"
  ldd "$build/bin/$program" | awk '$2 == "=>" {print $3} $1 ~ /^\// {print $1}' | xargs -I{} cp -Lu {} "$folder/lib/"
done
cp -Lu /lib64/ld-linux-x86-64.so.2 "$folder/lib/"
for model in "${models[@]}"; do cp -r "$root/models/$model" "$folder/models/"; done
cp -r "$root/tests/data/models" "$folder/tests/data/"
cp "$root/tools/device_check.sh" "$folder/tools/"
cp "$root"/bench/{compare_llama,run_record}.py "$folder/bench/"
[ -z "${LLAMA_BENCH:-}" ] || strip -o "$folder/bin/llama-bench" "$LLAMA_BENCH"
mkdir -p "$(dirname "$output")"
tar -C "$folder" -c . | xz -T0 -1 > "$output"  # -6 takes ten times as long, and the bundle is small enough
bytes=$(stat -c %s "$output")
echo "make_device_bundle: $output has $bytes bytes, at most $max_bytes; there: tar -xf $(basename "$output") && tools/device_check.sh"
[ "$bytes" -le "$max_bytes" ]
