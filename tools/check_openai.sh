#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The official openai client against `outrider serve`. Usage: tools/check_openai.sh OUTRIDER [test...]
# Exits with 77, and says why, where the client cannot be installed.
set -euo pipefail
program=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
venv=build/openai
[ -x "$venv/bin/python" ] || python3 -m venv "$venv" || { echo "skipped: python3-venv is missing" >&2; exit 77; }
"$venv/bin/python" -c 'import openai' 2>/dev/null ||
  "$venv/bin/pip" install -q --disable-pip-version-check openai ||
  { echo "skipped: the openai package cannot be installed" >&2; exit 77; }
exec "$venv/bin/python" tests/serving/openai_conformance.py "$program" "${@:2}"
