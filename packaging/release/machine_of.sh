#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the machine that a program or library is for: x86_64 or aarch64. Usage: packaging/release/machine_of.sh FILE
set -euo pipefail
case $(LC_ALL=C readelf -h "$1" | sed -n 's/ *Machine: *//p') in
  *X86-64) echo x86_64 ;;
  AArch64) echo aarch64 ;;
  *) echo "machine_of: $1: expected a file for x86-64 or AArch64" >&2; exit 1 ;;
esac
