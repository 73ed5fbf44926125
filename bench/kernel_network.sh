#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command in a new network namespace where the kernel's traffic control slows the loopback device down: a check
# of `netsim` by another implementation. Server and client both belong into the command.
#
#   bench/kernel_network.sh metro|5g|4g COMMAND...       delay, rate and loss, with the kernel's netem
# bench/kernel_network.sh rate:MBIT COMMAND...         only a rate, with a token bucket of one packet
#
# Needs root, or a system that gives namespaces to users, and iproute2. Ends with 77 where the kernel cannot do it.
set -euo pipefail

usage() { sed -n '3,10s/^# \{0,1\}//p' "$0" >&2; exit 64; }
[ $# -ge 2 ] || usage
network=$1
shift

# Half of a round trip in each direction, as in netsim; the device has one queue for both.
case $network in
  metro) queue=(netem delay 4.5ms rate 50mbit) ;;
  5g) queue=(netem delay 5ms 5ms loss 0.1%) ;;
  4g) queue=(netem delay 10.5ms 9.5ms rate 20mbit loss 0.1%) ;;
  rate:*) queue=(tbf rate "${network#rate:}mbit" burst 1600 latency 500ms) ;;
  *) usage ;;
esac

namespace=(unshare --net)
[ "$(id -u)" -eq 0 ] || namespace=(unshare --user --map-root-user --net)
"${namespace[@]}" true 2>/dev/null || { echo "skipped: this system gives no network namespaces" >&2; exit 77; }
command -v tc >/dev/null || { echo "skipped: tc is missing; apt-get install iproute2" >&2; exit 77; }

# Packets of a real network are small; the loopback device's would be 64 KiB.
exec "${namespace[@]}" bash -c '
  count=$1
  queue=("${@:2:count}")
  shift $((count + 1))
  ip link set lo mtu 1500 up
  if ! tc qdisc add dev lo root "${queue[@]}" 2>/dev/null; then
    echo "skipped: the kernel has no ${queue[0]}" >&2
    exit 77
  fi
  exec "$@"' kernel_network "${#queue[@]}" "${queue[@]}" "$@"
