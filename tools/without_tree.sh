#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command in a mount namespace where the source tree is an empty folder: what the command finds there, nobody
# else has. Usage: tools/without_tree.sh COMMAND [argument...]
set -euo pipefail
tree=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")
rights=()
[ "$(id -u)" = 0 ] || rights=(--map-root-user)
# The tree is a parameter of the inner script, not a part of it.
# shellcheck disable=SC2016
exec unshare --mount "${rights[@]}" bash -c 'mount -t tmpfs -o ro none "$0" && cd / && exec "$@"' "$tree" "$@"
