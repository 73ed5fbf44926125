#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The main job on the default models: one prompt plain and speculative, the proof that many are identical, the speed-up.
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
title "What it gains, with drafting left to the policy: plain and speculative in one run, interleaved"
"$outrider" bench --speculative auto --max-tokens 128
