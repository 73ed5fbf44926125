#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Decodes prompts for a running server over the networks of `netsim`, with drafts from here, and sets beside that the
server's own stream over the same network and plain decoding on this machine.

    outrider serve MODEL --remote-drafting [--speculative HEAD]
    bench/remote_networks.py MODEL --server HOST:PORT --speculative DRAFTER [--prompts PROMPTS.jsonl]

Every output must be the same. Rates count from the first tokens of an output, since a server keeps the prompts
that it has seen. Options that the script does not know go to `outrider generate`.
"""

import argparse
import contextlib
import json
import pathlib
import subprocess
import sys
import time
import urllib.request

NETWORKS = ["none", "metro", "5g", "4g"]


def read_prompts(options):
    """Texts, spread evenly over the file."""
    records = [json.loads(line) for line in options.prompts.read_text().splitlines() if line.strip()]
    texts = [record.get("prompt") or record.get("question") or record["turns"][0] for record in records]
    count = min(options.limit or len(texts), len(texts))
    return [texts[i * len(texts) // count] for i in range(count)]


@contextlib.contextmanager
def network(options, name):
    """Yields the address of the server behind a network."""
    process = subprocess.Popen([options.netsim, options.server, "--network", name, "--seed", "1"], stdout=subprocess.PIPE,
                               text=True)
    try:
        yield process.stdout.readline().split()[1]  # "forwarding 127.0.0.1:PORT to ..."
    finally:
        process.terminate()
        process.wait()


def generate(options, more, prompt, *arguments):
    command = [options.outrider, "generate", options.model, "--json", "-p", prompt, "--max-tokens",
               str(options.max_tokens), *more, *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def passes_of(answer):
    return answer["remote"]["verdicts"] if "remote" in answer else answer["usage"]["completion_tokens"]


def rate(answers):
    """Tokens per second; a pass gives its share of an output's tokens, and the time of the first one is left out."""
    tokens = sum(len(answer["token_ids"]) * (1 - 1 / passes_of(answer)) for answer in answers)
    return 1e3 * tokens / sum(answer["timings"]["decode_ms"] for answer in answers)


def stream(options, address, prompt):
    """The tokens after the first ones of the server's own plain output, and their seconds."""
    body = {"prompt": prompt, "max_tokens": options.max_tokens, "temperature": 0, "stream": True,
            "stream_options": {"include_usage": True, "continuous_usage_stats": True}, "speculative": {"mode": "off"}}
    request = urllib.request.Request(f"http://{address}/v1/completions", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    arrivals = []
    with urllib.request.urlopen(request, timeout=600) as answer:
        for line in answer:
            if b'"usage":{' in line:
                event = json.loads(line.removeprefix(b"data: "))
                arrivals.append((time.monotonic(), event["usage"]["completion_tokens"]))
    first = arrivals[0]
    last = next(arrival for arrival in arrivals if arrival[1] == arrivals[-1][1])
    return last[1] - first[1], last[0] - first[0]


def measure(options, more, prompts, texts, name):
    with network(options, name) as address:
        remote = ["--server", f"ws://{address}", "--speculative", options.speculative]
        answers = [generate(options, more, prompt, *remote) for prompt in prompts]
        streams = [stream(options, address, prompt) for prompt in prompts]
    if [answer["text"] for answer in answers] != texts:
        sys.exit(f"{name}: expected the outputs of plain decoding on this machine, found others")
    tokens = sum(len(answer["token_ids"]) for answer in answers)
    sums = {key: sum(answer["remote"][key] for answer in answers)
            for key in ("verdicts", "bytes_sent", "bytes_received", "ahead", "ahead_used")}
    return [name, tokens, f"{rate(answers):.1f}", f"{sum(t for t, _ in streams) / sum(s for _, s in streams):.1f}",
            sums["verdicts"], f"{tokens / sums['verdicts']:.2f}", f"{sums['bytes_sent'] / tokens:.0f}",
            f"{sums['bytes_received'] / tokens:.0f}", f"{sums['ahead']}, {sums['ahead_used']}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--outrider", default="build/release/bin/outrider")
    parser.add_argument("--netsim", default="build/release/bin/netsim")
    parser.add_argument("--server", required=True, metavar="HOST:PORT")
    parser.add_argument("--speculative", required=True, help="the drafter")
    parser.add_argument("--prompts", default=pathlib.Path(__file__).with_name("prompts.jsonl"), type=pathlib.Path,
                        help="JSONL file with prompt, turns or question per line")
    parser.add_argument("--limit", type=int, default=8, help="prompts used; 0: all")
    parser.add_argument("--max-tokens", type=int, default=64)
    options, more = parser.parse_known_args()
    prompts = read_prompts(options)
    local = [generate(options, more, prompt, "--speculative", "none") for prompt in prompts]
    print(f"plain decoding on this machine: {rate(local):.1f} tokens/s\n")
    columns = ["network", "tokens", "tokens/s", "streamed", "passes", "tokens/pass", "bytes to server/token",
               "bytes back/token", "ahead, used"]
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|")
    for name in NETWORKS:
        row = measure(options, more, prompts, [answer["text"] for answer in local], name)
        print("| " + " | ".join(map(str, row)) + " |", flush=True)


if __name__ == "__main__":
    main()
