# SPDX-License-Identifier: Apache-2.0
"""Runs of `outrider` over a file of prompts, for the scripts beside it."""

import argparse
import json
import subprocess
import sys


def prompt_arguments(description, limit):
    """Returns a parser of the options that run() needs; `limit` is the default number of prompts."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--outrider", default="build/release/bin/outrider")
    parser.add_argument("--model", default="builtin")
    parser.add_argument("--prompts", required=True, help="JSONL file")
    parser.add_argument("--limit", type=int, default=limit)
    parser.add_argument("--max-tokens", type=int, default=128)
    return parser


def run(args, command, speculative, *options):
    """Runs `outrider COMMAND` and returns the JSON object it prints."""
    words = [args.outrider, command, args.model, "--prompts", args.prompts, "--limit", str(args.limit), "--max-tokens",
             str(args.max_tokens), "--json", "--speculative", speculative, *options]
    result = subprocess.run(words, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(words)}: {result.stderr.strip()}")
    return json.loads(result.stdout)
