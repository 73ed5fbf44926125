#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Clients that people use against `outrider serve`, or against the server at a URL.
# Usage: tools/check_clients.sh OUTRIDER|URL [test...]
#        tools/check_clients.sh --forms OUTRIDER [option...]   each family's form of calls (tests/serving/client_forms.py)
#        tools/check_clients.sh --bytes OUTRIDER               models of random bytes (tests/serving/random_bytes.py)
# Exits with 77, and says why, where the clients cannot be installed.
set -euo pipefail
script=clients_conformance
case $1 in
  --forms) script=client_forms; shift ;;
  --bytes) script=random_bytes; shift ;;
esac
program=$1
[[ $program == http://* ]] || program=$(realpath "$program")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
venv=build/clients
[ -x "$venv/bin/python" ] || python3 -m venv "$venv" || { echo "skipped: python3-venv is missing" >&2; exit 77; }
"$venv/bin/python" -c 'import anthropic, instructor, langchain_openai, litellm, llm, lm_eval, numpy, openai, pydantic_ai' 2>/dev/null ||
  # uv resolves what pip takes more than ten minutes for.
  { "$venv/bin/pip" install -q --disable-pip-version-check uv &&
    "$venv/bin/uv" pip install -q --python "$venv/bin/python" openai anthropic litellm langchain-openai llm instructor \
      numpy 'pydantic-ai-slim[openai]' 'lm_eval[api]'; } || { echo "skipped: the clients cannot be installed" >&2; exit 77; }
if [ $script = clients_conformance ]; then
  "$venv/bin/python" tools/list_client_fields.py --check tests/data/client_fields.json
fi
exec "$venv/bin/python" "tests/serving/$script.py" "$program" "${@:2}"
