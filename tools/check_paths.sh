#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# No file of an unpacked artifact names the source tree that it was built in. Usage: tools/check_paths.sh FOLDER
set -euo pipefail
tree=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")
found=$(grep -rlaF -- "$tree" "$1" || true)
[ -z "$found" ] || { printf 'check_paths: expected no path of %s in any file, found it in:\n%s\n' "$tree" "$found" >&2; exit 1; }
