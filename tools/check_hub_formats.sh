#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares quantised checkpoints with transformers. Usage: tools/check_hub_formats.sh BUILD [option of check_hub_formats.py...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
oracle=build/oracle
[ -x "$oracle/bin/python" ] || python3 -m venv "$oracle"
"$oracle/bin/pip" install -q --disable-pip-version-check 'transformers==5.23.*' torch 'tokenizers==0.23.*' 'gguf==0.19.*' \
  safetensors sentencepiece numpy 'compressed-tensors==0.20.*'
program=$1/bin/outrider
shift
"$oracle/bin/python" tools/check_hub_formats.py "$program" "$@"
