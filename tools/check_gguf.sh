#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Reads what `outrider quantize` writes with the `gguf` package of llama.cpp. Usage: tools/check_gguf.sh BUILD
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
oracle=build/oracle
[ -x "$oracle/bin/python" ] || python3 -m venv "$oracle"
"$oracle/bin/pip" install -q --disable-pip-version-check 'gguf==0.19.*'
"$oracle/bin/python" tools/compare_gguf.py "$1/bin/outrider" models/outrider-small tests/data/models/{llama,mistral,qwen2,qwen3}
