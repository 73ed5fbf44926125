#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records what the program puts out over drafters, trees, rules, batches and the server, to compare two versions of it.

Usage: tools/record_behaviour.py PROGRAM > FILE        records token ids, log-probabilities and acceptance counts
       tools/record_behaviour.py --compare OLD NEW     lists the runs that differ; exit status 1 if any does

A run under a measured policy (auto) is recorded only by its tokens: how much it drafts depends on time.
"""

import concurrent.futures
import itertools
import json
import pathlib
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request

MODELS = pathlib.Path(__file__).resolve().parent.parent / "models"
DRAFTS = ",".join(str(MODELS / f"outrider-{name}") for name in ("draft", "draft-a", "draft-b"))
PROMPTS = ["Once upon a time there was a little girl named", "The quick brown fox. The quick brown fox. The quick"]
COUNTS = ("method", "steps", "drafted", "accepted", "acceptance_length", "accepted_per_position")
FIXED = ",policy=fixed"  # what is drafted does not depend on time

DRAFTERS = {
    "none": "none", "ngram": "ngram", "suffix": "suffix",
    "lookahead": "lookahead", "early_exit": "early_exit", "draft_target": "draft_target",
    "spec_infer": f"spec_infer,speculative_models=[{DRAFTS}]",
    "combined": "combine=[suffix,ngram,draft_target]", "combined_head": "combine=[suffix,eagle3]",
    "eagle3": "eagle3", "mtp": "mtp", "medusa": "medusa", "moa": "moa",
    "moa_tli1": f"moa,speculative_model={MODELS}/outrider-moa-tli1", "auto": "auto",
    "skipped_layers": "early_exit,skip_attention_layers=[1,2],skip_mlp_layers=[2]",
}
SHAPES = {
    "usual": "", "chain": ",tree=chain,max_draft_len=5", "static": ",expansion=[2,2,1]",
    "dynamic": ",tree=dynamic,dynamic_tree_max_topK=3,max_total_draft_tokens=12,max_draft_len=4",
}
RULES = [("coupled", 0.0), ("coupled", 0.9), ("rejection", 0.9), ("typical", 0.9), ("relaxed", 0.0)]


def counted(answer, timed):
    speculation = answer["speculation"]
    counts = {} if timed else {key: speculation.get(key) for key in COUNTS}
    return {"token_ids": answer["token_ids"], "finish_reason": answer["finish_reason"], "speculation": counts}


def generate(program, name, arguments, timed=False):
    command = [program, "generate", "builtin", "--json", "--max-tokens", "40", "--threads", "1", "--cache-dir", "none", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return name, {"error": done.stderr.replace(str(MODELS.parent), "."), "status": done.returncode}
    return name, counted(json.loads(done.stdout), timed)


def generations(program):
    for (drafter, keys), (shape, more), (rule, temperature) in itertools.product(DRAFTERS.items(), SHAPES.items(), RULES):
        if drafter in ("none", "auto", "lookahead") and shape != "usual":
            continue
        if drafter == "auto" and rule != "coupled":
            continue  # what is drafted, and so the text, depends on time
        number = len(drafter) + len(shape)
        policy = "" if drafter == "auto" else FIXED
        arguments = ["-p", PROMPTS[number % 2], "--speculative", keys + more + policy, "--acceptance", rule,
                     "--temperature", str(temperature), "--seed", str(number)]
        yield program, f"{drafter} {shape} {rule} {temperature}", arguments, drafter == "auto"
    for kernels in ("reference", "avx2", "avx512"):
        for weights in ("f32", "q8", "q4", "q8_0"):
            yield (program, f"{kernels} {weights}", ["-p", PROMPTS[0], "--speculative", "draft_target" + FIXED, "--kernels", kernels,
                                                     "--weights", weights])
    for drafter in ("eagle3", "suffix", "spec_infer"):
        yield (program, f"{drafter} penalties", ["-p", PROMPTS[0], "--speculative", DRAFTERS[drafter] + FIXED, "--top-k", "20", "--top-p",
                                                 "0.9", "--temperature", "0.8", "--repetition-penalty", "1.2", "--min-p", "0.01"])


def scores(program):
    for kernels in ("reference", "avx2", "avx512"):
        command = [program, "score", str(MODELS / "outrider-small"), "--kernels", kernels, "--json", "--prompt-ids",
                   ",".join(str(3 + 7 * i % 500) for i in range(64))]
        done = subprocess.run(command, capture_output=True, text=True)
        yield f"score {kernels}", json.loads(done.stdout)["logprobs"] if done.returncode == 0 else done.stderr


def wait_until_ready(address):
    for _ in range(300):
        try:
            with urllib.request.urlopen(address + "/health"):
                return
        except urllib.error.HTTPError:  # still loading
            time.sleep(0.1)
    raise TimeoutError(f"{address} did not become ready within 30 s")


def served(program):
    """Sixteen requests at once, with log-probabilities."""
    for method in ("none", "ngram", "draft_target,tree=dynamic,max_draft_len=4", "eagle3"):
        server = subprocess.Popen([program, "serve", "builtin", "--port", "0", "--speculative", method + FIXED, "--max-batch", "4"],
                                  stderr=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        try:
            address = None
            while address is None:
                line = server.stdout.readline()
                found = re.search(r"http://[\d.]+:\d+", line)
                address = found and found.group(0)

            wait_until_ready(address)

            def ask(i):
                body = {"prompt": PROMPTS[i % 2], "max_tokens": 24, "temperature": (i % 3) / 2, "seed": i, "logprobs": 2,
                        "return_token_ids": True, "n": 1 + i % 2}
                request = urllib.request.Request(address + "/v1/completions", json.dumps(body).encode(),
                                                 {"Content-Type": "application/json"})
                with urllib.request.urlopen(request) as answer:
                    return [[choice["text"], choice.get("token_ids"), choice["logprobs"]["token_logprobs"]]
                            for choice in json.load(answer)["choices"]]

            with concurrent.futures.ThreadPoolExecutor(16) as pool:
                yield f"served {method}", list(pool.map(ask, range(16)))
        finally:
            server.terminate()
            server.wait()


def record(program):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        runs = dict(pool.map(lambda arguments: generate(*arguments), generations(program)))
    runs.update(scores(program))
    runs.update(served(program))
    json.dump(runs, sys.stdout, indent=0)


def compare(old_file, new_file):
    old, new = (json.loads(pathlib.Path(file).read_text()) for file in (old_file, new_file))
    differing = [name for name in sorted(old.keys() | new.keys()) if old.get(name) != new.get(name)]
    for name in differing:
        print(f"{name}:\n  old {json.dumps(old.get(name))[:300]}\n  new {json.dumps(new.get(name))[:300]}")
    print(f"{len(old)} and {len(new)} runs, {len(differing)} differ")
    return 1 if differing else 0


def main():
    if len(sys.argv) == 4 and sys.argv[1] == "--compare":
        return compare(*sys.argv[2:])
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    record(sys.argv[1])
    return 0


if __name__ == "__main__":
    sys.exit(main())
