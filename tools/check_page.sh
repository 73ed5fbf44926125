#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The chat page and OpenAI's JavaScript client in headless Chromium. Usage: tools/check_page.sh BUILD [gtest option...]
# Exits with 77, and says why, without Chromium; without npm the client is left out. Pictures of the page are left in
# BUILD/pictures.
set -euo pipefail
build=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
command -v chromium chromium-browser google-chrome >/dev/null ||
  { echo "skipped: there is no Chromium (apt-get install chromium)" >&2; exit 77; }
if [ ! -d build/browser/node_modules/openai ]; then
  npm install --silent --no-audit --no-fund --prefix build/browser openai ||
    echo "OpenAI's client is left out: npm cannot install it" >&2
fi
exec "$build/bin/page_test" "${@:2}"
