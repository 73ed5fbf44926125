#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Shows the default model at work: one answer plain and speculative, the proof that outputs are identical, the speed-up.
# Usage: tools/demo.sh path/to/outrider
set -euo pipefail
outrider=$1
question='Write a Python function that adds two numbers, and explain each line.'

title() { printf '\n== %s\n\n' "$*"; }

title "The model alone: $question"
"$outrider" generate --chat -p "$question" --max-tokens 160
title "The same with --speculative auto: accepted tokens, corrections and bonus tokens marked"
"$outrider" generate --chat -p "$question" --max-tokens 160 --speculative auto --show-draft
title "Is the output the model's own? Greedy and sampled, alone and in batches"
"$outrider" verify-lossless --limit 4 --max-tokens 48
title "The speed-up, with the policy in charge of drafting: plain and speculative in turn"
"$outrider" bench --speculative auto --prompts tools/demo_prompts.jsonl --max-tokens 128 --runs 2
