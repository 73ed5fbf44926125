#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints every library that programs and libraries need, and what those libraries need, as files below ROOT/usr/lib/MACHINE or
# ROOT/lib/MACHINE. ROOT may be for another machine. Usage: packaging/release/needed_libraries.sh ROOT MACHINE FILE...
set -euo pipefail
folders=("$1/usr/lib/$2-linux-gnu" "$1/lib/$2-linux-gnu")
shift 2
declare -A found
place_of() {  # NAME, FILE that needs it
  local folder
  for folder in "${folders[@]}"; do
    if [ -e "$folder/$1" ]; then echo "$folder/$1"; return; fi
  done
  echo "needed_libraries: $2: expected $1 in ${folders[*]}" >&2
  exit 1
}
search() {  # FILE
  local name
  for name in $(LC_ALL=C readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
    [ -z "${found[$name]:-}" ] || continue
    found[$name]=$(place_of "$name" "$1")
    search "${found[$name]}"
  done
}
for file in "$@"; do search "$file"; done
printf '%s\n' "${found[@]}" | sort
