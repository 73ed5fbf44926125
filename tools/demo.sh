#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Shows the built-in models at work: one prompt plain and speculative, the proof that outputs are identical, the speed-up.
# Usage: tools/demo.sh path/to/outrider
set -euo pipefail
outrider=$1
prompt='Once upon a time, there was a little girl named Lily. She'

title() { printf '\n== %s\n\n' "$*"; }

title "The target alone"
"$outrider" generate -p "$prompt" --max-tokens 96
title "The same with a small model drafting: accepted tokens, corrections and bonus tokens marked"
"$outrider" generate -p "$prompt" --max-tokens 96 --speculative draft_target,max_draft_len=4 --show-draft
title "Is the output the target's own? Greedy and sampled, alone and in batches"
"$outrider" verify-lossless --speculative draft_target,max_draft_len=4 --max-tokens 64
title "The speed-up, with the policy in charge of drafting: plain and speculative in turn"
"$outrider" bench --speculative auto --max-tokens 128
