#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs a build into a new folder and builds the examples against it, with find_package and with pkg-config; the
# library shows its API and nothing else. A program that is too large for the wheel (tools/check_wheel.sh) is found here,
# because every change runs this. Usage: tools/check_install.sh BUILD-DIR
set -euo pipefail
build=$(realpath "$1")
source=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
prefix=$folder/prefix

cmake --install "$build" --prefix "$prefix" >/dev/null
library=$(find "$prefix" -name liboutrider.so)

strange=$(nm -DC --defined-only "$library" | awk '$2 != "A" { $1 = $2 = ""; print }' |
  grep -vE '^ +(outrider_|outrider::|typeinfo (name )?for outrider::|vtable for outrider::)' || true)
[ -z "$strange" ] || { echo "check_install: expected only the API among the symbols, found: $strange" >&2; exit 1; }

# The wheel has the engine twice, in this program and in its module: with that many bytes here it has its 18 MiB.
strip -o "$folder/stripped" "$prefix/bin/outrider"
bytes=$(gzip -c "$folder/stripped" | wc -c)
[ "$bytes" -le 8835000 ] || { echo "check_install: expected 8,835,000 bytes of a packed outrider at most, found $bytes" >&2; exit 1; }

cmake -S "$source/examples" -B "$folder/examples" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
ninja -C "$folder/examples" --quiet
PKG_CONFIG_PATH=$(dirname "$library")/pkgconfig
export PKG_CONFIG_PATH
# The options of pkg-config are words of the command.
# shellcheck disable=SC2046
cc -std=c99 -Wall -Wextra -Wpedantic -Werror "$source/examples/generate.c" -o "$folder/by_pkg_config" \
  $(pkg-config --cflags --libs outrider) -Wl,-rpath,"$(dirname "$library")"

prompt="one two three one two"
text() { "$@" | head -n 1; }
expected=$(text "$prefix/bin/outrider" generate builtin -p "$prompt" --max-tokens 64 --threads 2)
for program in "$folder/examples/generate" "$folder/by_pkg_config"; do
  found=$(text "$program" builtin "$prompt")
  [ "$found" = "$expected" ] || { echo "check_install: expected '$expected', found '$found'" >&2; exit 1; }
done
"$folder/examples/user_drafter" "$prefix/share/outrider/models/outrider-small" "$prompt" >/dev/null
echo "check_install: the installed program, library and examples work"
