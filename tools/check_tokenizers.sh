#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares our tokenizers with the `tokenizers` package on 20,000 texts per family. Usage: tools/check_tokenizers.sh BUILD
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
oracle=build/oracle
[ -x "$oracle/bin/python" ] || python3 -m venv "$oracle"
"$oracle/bin/pip" install -q --disable-pip-version-check 'tokenizers==0.23.*'
"$oracle/bin/python" tools/compare_tokenizers.py "$1/bin/tokenizer_dump" --count 20000
