#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tries the program, or the package for Python, in a root. tools/check_release.sh calls it in new namespaces. There it
# mounts CONTENT, the unpacked tarball or wheel ("-": the root has it), and the network ends at loopback.
# Usage: packaging/release/try_root.sh ROOT CONTENT program|wheel
set -euo pipefail
root=$(realpath "$1") content=$2 kind=$3
prompt="one two three"
fail() { echo "try_root: $root: $*" >&2; exit 1; }

ip link set lo up
mkdir -p "$root"/{proc,dev,tmp,opt/outrider}
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/tmp"
mount --rbind /dev "$root/dev"
if [ "$content" != - ]; then
  mount --bind "$content" "$root/opt/outrider"
  mount -o remount,bind,ro "$root/opt/outrider"
fi
for compiler in cc gcc c++ g++ clang; do
  [ ! -e "$root/usr/bin/$compiler" ] || fail "expected no compiler, found $compiler"
done
# Nobody answers at the port of the hub.
inside=(env -i HOME=/tmp PATH=/usr/bin:/bin OUTRIDER_CACHE_DIR=none HF_ENDPOINT=http://127.0.0.1:9 PYTHONPATH=/opt/outrider
  /usr/sbin/chroot "$root")
program=("${inside[@]}" /opt/outrider/bin/outrider)

try_wheel() {
  local text
  text=$("${inside[@]}" python3 -c "
from outrider import LLM, SamplingParams
llm = LLM('builtin', speculative_config='draft_target')
output = llm.generate('$prompt', SamplingParams(max_tokens=8, temperature=0))
print(output.outputs[0].text)")
  [ -n "$text" ] || fail "expected a text from the package for Python, found none"
  echo "   wheel: five lines of Python continue '$prompt' with '$text'"
}

# One answer of a server on loopback has the text of `generate`. The client is outside of the root. An emulated processor would
# take many minutes to time its passes, which tells the policy what drafts cost.
try_server() {  # TEXT
  local options=()
  [ "$(packaging/release/machine_of.sh "$root/opt/outrider/bin/outrider")" = "$(uname -m)" ] || options=(--speculative none)
  "${program[@]}" serve builtin --port 18080 "${options[@]}" > "$root/tmp/serve.log" 2>&1 &
  local server=$!
  python3 - "$prompt" "$1" <<'PYTHON' || { tail -n 20 "$root/tmp/serve.log" >&2; fail "the server did not answer as expected"; }
import json, sys, time, urllib.error, urllib.request
address, (prompt, expected) = "http://127.0.0.1:18080", sys.argv[1:]
for attempt in range(3000):
    try:
        health = urllib.request.urlopen(address + "/health", timeout=5).status
        break
    except urllib.error.URLError:
        time.sleep(0.1)
assert health == 200, health
body = json.dumps({"prompt": prompt, "max_tokens": 8, "temperature": 0}).encode()
request = urllib.request.Request(address + "/v1/completions", body, {"Content-Type": "application/json"})
text = json.load(urllib.request.urlopen(request, timeout=60))["choices"][0]["text"]
assert text == expected, f"expected {expected!r} as generate says, found {text!r}"
PYTHON
  kill -TERM "$server"
  wait "$server" || fail "expected the server to end with 0, found $?"
}

try_program() {
  local version text problem
  version=$("${program[@]}" --version | tr '\n' ' ')
  text=$("${program[@]}" generate builtin -p "$prompt" --max-tokens 8 --json |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["text"])')
  [ -n "$text" ] || fail "expected a text, found none"
  try_server "$text"
  # `pull` has its library from the archive.
  problem=$(timeout 20 "${program[@]}" pull smollm2 2>&1) || true
  grep -q 'Failed to connect to 127.0.0.1' <<< "$problem" || fail "expected pull to try its port, found: $problem"
  # The driver of a GPU is the machine's; where there is none, one line says so.
  problem=$("${program[@]}" generate builtin -p "$prompt" --max-tokens 8 --device cuda 2>&1) ||
    grep -q 'there is no driver of NVIDIA' <<< "$problem" || fail "expected one line on the driver, found: $problem"
  echo "   $version; continues '$prompt' with '$text'; serve says the same"
}

"try_$kind"
