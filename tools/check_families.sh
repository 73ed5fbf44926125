#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares random models of every family with transformers. Usage: tools/check_families.sh BUILD [option of check_families.py...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
oracle=build/oracle
[ -x "$oracle/bin/python" ] || python3 -m venv "$oracle"
"$oracle/bin/pip" install -q --disable-pip-version-check 'transformers==5.23.*' torch 'tokenizers==0.23.*' 'gguf==0.19.*' \
  safetensors sentencepiece numpy
program=$1/bin/outrider
shift
"$oracle/bin/python" tools/check_families.py "$program" "$@"
