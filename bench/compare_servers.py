#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Throughput of `outrider serve` with policy auto, without speculation, and of llama-server, by requests at once.

    bench/compare_servers.py MODEL.gguf --prompts PROMPTS.jsonl [--rounds 5] [--llama-server PROGRAM
      [--llama-variant ngram="--spec-type ngram-simple" ...]]
      [--other openvino="PYTHON bench/library_server.py openvino MODEL.gguf" ...]

All servers hold the model at the same time and idle while another one is asked. A round asks each server the same
prompts at each level; who comes first changes from level to level. Every round has new prompts while the file has some,
so that no server answers only from its prefix cache. The table has the medians of tokens per second and of the
ratios of the rounds, with a row for each server where there is only one level.
"""

import argparse
import concurrent.futures
import contextlib
import itertools
import json
import pathlib
import shlex
import socket
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request

import run_record

SECONDS_TO_START = 60
SECONDS_TO_ANSWER = 600


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def commands(options):
    """Returns the command of each server by its name, without the port."""
    places, threads = max(options.levels), str(options.threads)
    ours = [options.outrider, "serve", options.model, "--max-batch", str(places), "--ctx", str(options.context),
            "--threads", threads]
    servers = {"auto": [*ours, "--speculative", "auto"], "none": [*ours, "--speculative", "none"]}
    if options.llama_server:
        theirs = [options.llama_server, "-m", options.model, "--host", "127.0.0.1", "-np", str(places),
                  "-c", str(places * options.context), "-t", threads, "-tb", threads]
        servers["llama-server"] = theirs
        for name, _, arguments in (variant.partition("=") for variant in options.llama_variant):
            servers[f"llama-server {name}"] = [*theirs, *shlex.split(arguments)]
    for name, _, command in (other.partition("=") for other in options.other):
        servers[name] = shlex.split(command)
    return servers


@contextlib.contextmanager
def started(servers):
    """Starts the servers and yields their URLs when all of them are ready."""
    processes, urls = [], {}
    try:
        for name, command in servers.items():
            port = free_port()
            processes.append(subprocess.Popen([*command, "--port", str(port)], stdout=subprocess.DEVNULL,
                                              stderr=subprocess.DEVNULL))
            urls[name] = f"http://127.0.0.1:{port}"
        for name, url in urls.items():
            wait_until_ready(name, url)
        yield urls
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()


def wait_until_ready(name, url):
    end = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < end:
        with contextlib.suppress(urllib.error.URLError, ConnectionError):
            urllib.request.urlopen(f"{url}/health", timeout=1)
            return
        time.sleep(0.1)
    sys.exit(f"{name}: not ready after {SECONDS_TO_START} s")


def messages_of(line):
    record = json.loads(line)
    if "messages" in record:
        return record["messages"]
    text = record.get("prompt") or record.get("question") or record["turns"][0]
    return [{"role": "user", "content": text}]


def ask(options, url, line):
    """Returns the number of tokens of one streamed answer."""
    body = {"messages": messages_of(line), "max_tokens": options.max_tokens, "temperature": 0, "ignore_eos": True,
            "stream": True, "stream_options": {"include_usage": True}}
    request = urllib.request.Request(f"{url}/v1/chat/completions", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=SECONDS_TO_ANSWER) as answer:
        usage = [line for line in answer.read().splitlines() if b'"usage":{' in line][-1]
    return json.loads(usage.removeprefix(b"data: "))["usage"]["completion_tokens"]


def throughput(options, url, level, prompts):
    """Returns output tokens per second."""
    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(level) as pool:
        tokens = sum(pool.map(lambda line: ask(options, url, line), prompts))
    return tokens / (time.monotonic() - begin)


def measure(options, urls):
    """Returns {level: {server: [tokens per second of each round]}}."""
    lines = itertools.cycle(pathlib.Path(options.prompts).read_text().splitlines(keepends=True))
    result = {level: {name: [] for name in urls} for level in options.levels}
    names = list(urls)
    for turn in range(options.rounds):
        for place, level in enumerate(options.levels):
            prompts = list(itertools.islice(lines, max(4, options.requests * level)))
            first = (turn + place) % len(names)
            for name in names[first:] + names[:first]:
                result[level][name].append(throughput(options, urls[name], level, prompts))
        print(f"round {turn + 1} of {options.rounds}", file=sys.stderr)
    return result


def by_level(result):
    """Returns columns and rows of a run: a row for each number of requests at once."""
    names = list(next(iter(result.values())))
    others = [name for name in names if name != "auto"]
    columns = [{"name": "requests at once"}, *({"name": f"{name}, tokens/s", "format": ".0f"} for name in names),
               *({"name": f"auto over {name}", "format": ".2f"} for name in others)]
    return columns, [[level, *(statistics.median(speeds[name]) for name in names), *(ratio(speeds, name) for name in others)]
                     for level, speeds in result.items()]


def by_server(speeds):
    """Returns columns and rows of a run with one number of requests: a row for each server."""
    columns = [{"name": ""}, {"name": "tokens/s", "format": ".0f"}, {"name": "auto over it", "format": ".2f"}]
    return columns, [[name, statistics.median(speeds[name]), None if name == "auto" else ratio(speeds, name)]
                     for name in speeds]


def ratio(speeds, name):
    """The median of the rounds' ratios."""
    return statistics.median(a / b for a, b in zip(speeds["auto"], speeds[name]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="GGUF file")
    parser.add_argument("--outrider", default="build/release/bin/outrider")
    parser.add_argument("--llama-server", help="the program, if it shall be compared")
    parser.add_argument("--llama-variant", metavar="NAME=ARGUMENTS", action="append", default=[],
                        help="one more llama-server with further arguments; may be repeated")
    parser.add_argument("--other", metavar="NAME=COMMAND", action="append", default=[],
                        help="one more server, which takes --port; may be repeated")
    parser.add_argument("--prompts", required=True, help="JSONL file")
    parser.add_argument("--levels", type=lambda text: [int(part) for part in text.split(",")], default=[1, 4, 8, 16, 32])
    parser.add_argument("--requests", type=int, default=3, help="requests of a level for each one at once")
    parser.add_argument("--max-tokens", type=int, default=64)
    parser.add_argument("--context", type=int, default=768, help="tokens of each request, with its answer")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--record", metavar="FILE", help="also write the run, for bench/runs")
    options = parser.parse_args()
    with started(commands(options)) as urls:
        result = measure(options, urls)
    columns, rows = by_level(result) if len(result) > 1 else by_server(*result.values())
    print("\n".join(run_record.table_lines(columns, rows)))
    if options.record:
        run_record.write_run(options.record, columns, rows)


if __name__ == "__main__":
    main()
