#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares our grammars with Python's `re` and the `jsonschema` package. Usage: tools/check_grammar.sh BUILD
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
oracle=build/oracle
[ -x "$oracle/bin/python" ] || python3 -m venv "$oracle"
"$oracle/bin/pip" install -q --disable-pip-version-check 'jsonschema==4.*'
"$oracle/bin/python" tools/compare_grammars.py "$1/bin/grammar_probe"
