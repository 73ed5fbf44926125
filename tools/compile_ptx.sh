#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles the kernels of one file for one device: PTX, the same with contraction allowed, machine code and what ptxas
# says of it. Usage: tools/compile_ptx.sh NVCC ARCHITECTURE SOURCE OUTPUT   (OUTPUT is without a suffix)
set -euo pipefail
nvcc=$1 arch=$2 source=$3 output=$4
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
flags=(-std=c++20 -I "$root/src" -arch="$arch" -ftz=false -prec-div=true -prec-sqrt=true -Werror=all-warnings)
"$nvcc" "${flags[@]}" -fmad=false -ptx -o "$output.ptx" "$source"
"$nvcc" "${flags[@]}" -fmad=true -ptx -o "$output.fmad.ptx" "$source"
"$(dirname "$nvcc")/ptxas" -v -arch="$arch" -o "$output.cubin" "$output.ptx" 2>"$output.log" || { cat "$output.log" >&2; exit 1; }
