#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A model larger than the memory it may use (--memory): is the text the same, and what do passes and trees take?

    bench/make_random_gguf.py llama-1b q8_0 target.gguf
    bench/make_random_gguf.py llama-25m q8_0 draft.gguf
    bench/offload.py target.gguf draft.gguf --resident 25 50 90 --cache FOLDER
    bench/offload.py target.gguf draft.gguf --resident 25 --cache FOLDER --peer llama.cpp/build/bin --groups FOLDER

For every share of the weights that is to stay in memory it finds the limit that leaves so many, and prints a row. The
row has the limit, the bytes that a pass reads and their time at the rate that the engine measured when it was opened.
It has the time of a pass of plain decoding, and tokens a second without and with a tree of 24 nodes; its first drafts
are right with probability 0.7. It ends with the peak of resident memory, and whether the text equals the text of the
model in memory.

--groups is the folder of a memory cgroup (version 1 or 2) in which this user may make others: every program then runs
in a group with the limit of --memory and 5 %. The option --peer adds llama.cpp, which maps the file; the better of its
runs with and without repacked weights counts. The page cache of the files is dropped before every run. """

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys

TREE = "tree=dynamic,max_draft_len=8,dynamic_tree_max_topK=3,max_total_draft_tokens=24"
SLACK = 1.05  # of the limit
MIB = 1 << 20


class MemoryGroup:
    """A cgroup for one program, or none where `parent` is None."""

    def __init__(self, parent, limit):
        self.folder = pathlib.Path(parent) / f"offload-{os.getpid()}" if parent else None
        self.limit = limit

    def __enter__(self):
        if self.folder:
            self.folder.mkdir()
            names = ("memory.max", "memory.limit_in_bytes")
            next(self.folder / name for name in names if (self.folder / name).exists()).write_text(str(self.limit))
        return self

    def __exit__(self, *_):
        if self.folder:
            self.folder.rmdir()

    def join(self):
        if self.folder:
            (self.folder / "cgroup.procs").write_text(str(os.getpid()))


def drop_pages(paths):
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def run(args, command, limit=None):
    """Returns the standard output (None: the program was killed) and the peak of resident memory in bytes."""
    drop_pages([args.target, *pathlib.Path(args.cache).glob("*.packed")])
    with MemoryGroup(args.groups if limit else None, int(SLACK * limit) if limit else 0) as group:
        process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True,
                                   stderr=subprocess.PIPE, preexec_fn=group.join)
        output, errors = process.stdout.read(), process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
    code = os.waitstatus_to_exitcode(status)
    if code == -signal.SIGKILL:
        return None, usage.ru_maxrss * 1024
    if code != 0:
        sys.exit(f"{' '.join(map(str, command))} ended with {code}: {errors[-500:]}")
    return output, usage.ru_maxrss * 1024


def outrider(args, command, limit, *options):
    """Runs a command of the engine and returns its JSON object and its peak of resident memory."""
    drafter = f"draft_target,speculative_model={args.draft},policy={args.policy},{TREE}"
    words = [args.outrider, command, args.target, "--packed-cache", args.cache, "--ctx", 512, "--max-batch", 1,
             "--json", "--ignore-eos", "--speculative", drafter, *options]
    output, peak = run(args, words + (["--memory", f"{limit // MIB}M"] if limit else []), limit)
    if output is None:
        sys.exit(f"outrider {command} took more than {SLACK} times its limit of {limit} bytes and was killed")
    return json.loads(output), peak


def bench(args, limit, tokens):
    return outrider(args, "bench", limit, "--limit", 1, "--runs", 1, "--max-tokens", tokens,
                    "--synthetic-acceptance", 0.7)


def find_limit(args, share):
    """The limit that leaves about that share of the weights in memory, from below: at more than the whole model takes
    nothing is read, and the bytes tell nothing."""
    weights = os.path.getsize(args.target)
    limit = int(share * weights) + 300_000_000
    for _ in range(5):
        found, _ = bench(args, limit, 1)
        missing = found["streamed_bytes"] - (1 - share) * weights
        if abs(missing) < 0.02 * weights:
            break
        limit += int(0.7 * missing)
    return limit


def text(args, limit):
    return outrider(args, "generate", limit, "-p", "One, two", "--max-tokens", args.tokens)[0]["token_ids"]


def peer_rate(args, limit):
    """Tokens a second of llama.cpp with the file mapped; 0: killed."""
    best = 0.0
    for repack in (0, 1):
        output, _ = run(args, [pathlib.Path(args.peer) / "llama-bench", "-m", args.target, "-lm", "mmap", "-p", 0, "-n",
                               args.peer_tokens, "-r", 1, "-t", os.cpu_count(), "--no-warmup", "--repack", repack, "-o",
                               "json"], limit)
        if output:
            best = max(best, json.loads(output)[0]["avg_ts"])
    return best


def measure(args, share):
    limit = find_limit(args, share)
    identical = text(args, limit) == text(args, None)
    found, peak = bench(args, limit, args.tokens)
    plain, trees = found["plain_tokens_per_second"], found["speculative_tokens_per_second"]
    nodes = found["drafted"] / found["steps"]  # less than the limit where the answer ends
    read_ms = 1e3 * found["streamed_bytes"] / found["read_rate"]
    kept = 1 - found["streamed_bytes"] / os.path.getsize(args.target)
    cells = [f"{100 * kept:.0f} %", f"{limit / 1e6:.0f} MB", f"{found['streamed_bytes'] / 1e6:.0f} MB",
             f"{found['read_rate'] / 1e9:.2f} GB/s", f"{read_ms:.0f} ms", f"{1e3 / plain:.0f} ms",
             f"{1e3 / plain / read_ms:.2f}", f"{plain:.2f}", f"{trees:.2f}", f"{trees / plain:.2f}",
             f"{nodes:.0f}", f"{found['acceptance_length']:.2f}", f"{peak / limit:.2f}", "yes" if identical else "NO"]
    if args.peer:
        rate = peer_rate(args, limit)
        cells += [f"{rate:.2f}", f"{trees / rate:.1f}" if rate else "-"]
    print("| " + " | ".join(cells) + " |", flush=True)
    return [measured_pass(found, 1, 1e3 / plain), measured_pass(found, 1 + round(nodes), found["verify_ms_per_step"])]


def measured_pass(found, rows, milliseconds):
    """A pass for simulate_ranks.py, for which threads are shards that exchange numbers in no time."""
    return {"shards": found["threads"], "stages": 1, "rows": rows, "ms": milliseconds,
            "streamed_bytes": found["streamed_bytes"], "disk_rate": found["read_rate"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target")
    parser.add_argument("draft")
    parser.add_argument("--outrider", default="build/release/bin/outrider")
    parser.add_argument("--resident", type=float, nargs="+", default=[25, 50, 90], help="percent of the weights")
    parser.add_argument("--cache", required=True, help="folder for packed weights")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--policy", choices=["auto", "fixed"], default="auto", help="fixed: whole trees in every step")
    parser.add_argument("--groups", help="folder of a memory cgroup")
    parser.add_argument("--peer", help="folder of llama-bench")
    parser.add_argument("--peer-tokens", type=int, default=4)
    parser.add_argument("--measured", help="file of passes for simulate_ranks.py fit, with --shape and --weights")
    parser.add_argument("--shape", default="llama-1b", help="of the target")
    parser.add_argument("--weights", default="q8_0", help="of the target")
    args = parser.parse_args()
    columns = ["resident", "limit", "read", "rate", "time of reading", "pass", "ratio", "plain", "trees", "gain",
               "nodes", "length", "peak", "same text"] + (["llama.cpp", "trees over it"] if args.peer else [])
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|")
    passes = [case for share in args.resident for case in measure(args, share / 100)]
    if args.measured:
        cases = [{"shape": args.shape, "weights": args.weights, **case} for case in passes]
        pathlib.Path(args.measured).write_text(json.dumps(cases, indent=1) + "\n")


if __name__ == "__main__":
    main()
