#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Shows the default model at work: an answer, what is drafted for another, the proof that outputs are identical, and the
# speed-up. Usage: tools/demo.sh path/to/outrider
set -euo pipefail
outrider=$1

title() { printf '\n== %s\n\n' "$*"; }

question='Explain in three sentences what gravity is.'
title "The model alone: $question"
"$outrider" generate --chat -p "$question" --max-tokens 128 --speculative none
question='Write a Python class for a bank account with deposit and withdraw.'
title "With drafts: $question Accepted tokens, corrections and bonus tokens are marked"
"$outrider" generate --chat -p "$question" --max-tokens 112 --show-draft
title "Is the output the model's own? Greedy and sampled, alone and in batches"
"$outrider" verify-lossless --limit 4 --max-tokens 32
title "The speed-up, with the policy in charge of drafting: plain and speculative in turn"
"$outrider" bench --max-tokens 192 --runs 2
