#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what adapters cost: eight requests at once, each with another adapter, against eight without, in turn.

    tools/measure_adapters.py OUTRIDER MODEL [--rank 8] [--modules q_proj,v_proj] [--rounds 7] [--tokens 64] [--drafts]

The adapters are of random numbers, too small to change texts much. Needs numpy and safetensors."""

import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile
import threading
import time
import urllib.request

import numpy as np
from safetensors.numpy import save_file

ADAPTERS = 8


def shapes(outrider, model):
    """[inputs, outputs] of the modules, and the number of layers."""
    config = json.loads(subprocess.run([outrider, "inspect", model, "--json"], check=True, capture_output=True).stdout)
    config = config.get("config", config)
    hidden, heads = config["hidden_size"], config["head_count"]
    kv = config["kv_head_count"] * config["head_dim"]
    queries = heads * config["head_dim"]
    ffn = config["ffn_size"]
    return config["layer_count"], {
        "q_proj": ("self_attn", hidden, queries), "k_proj": ("self_attn", hidden, kv), "v_proj": ("self_attn", hidden, kv),
        "o_proj": ("self_attn", queries, hidden), "gate_proj": ("mlp", hidden, ffn), "up_proj": ("mlp", hidden, ffn),
        "down_proj": ("mlp", ffn, hidden)}


def write_adapter(folder, seed, layers, modules, rank, dtype):
    random = np.random.default_rng(seed)
    folder.mkdir()
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": rank, "lora_alpha": rank}))
    tensors = {}
    for layer in range(layers):
        for name, (part, inputs, outputs) in modules.items():
            stem = f"base_model.model.model.layers.{layer}.{part}.{name}"
            tensors[f"{stem}.lora_A.weight"] = (random.standard_normal((rank, inputs)) * 0.01).astype(dtype)
            tensors[f"{stem}.lora_B.weight"] = (random.standard_normal((outputs, rank)) * 0.01).astype(dtype)
    save_file(tensors, folder / "adapter_model.safetensors")


def ask(port, adapter, tokens, drafts, seed):
    body = {"prompt": f"Write a long story about number {seed} and its friends.", "max_tokens": tokens, "temperature": 0,
            "ignore_eos": True, "lora": [adapter] if adapter else [], "speculative": {"enabled": drafts}}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/completions", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=600) as answer:
        return json.load(answer)["usage"]["completion_tokens"]


def run_round(port, adapters, options):
    counts = []
    threads = [threading.Thread(target=lambda i=i: counts.append(ask(port, adapters[i], options.tokens, options.drafts, i)))
               for i in range(ADAPTERS)]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - begin)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("outrider")
    parser.add_argument("model")
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--modules", default="q_proj,v_proj")
    parser.add_argument("--dtype", default="float32", choices=["float32", "float16"])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--drafts", action="store_true")
    options = parser.parse_args()
    layers, all_modules = shapes(options.outrider, options.model)
    modules = {name: all_modules[name] for name in options.modules.split(",")}
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        command = [options.outrider, "serve", options.model, "--port", "0", "--max-batch", str(ADAPTERS)]
        for i in range(ADAPTERS):
            write_adapter(root / f"a{i}", i, layers, modules, options.rank, options.dtype)
            command += ["--lora", f"a{i}={root / f'a{i}'}"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            port = int(server.stdout.readline().rsplit(":", 1)[1])
            while True:
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/health")
                    break
                except OSError:
                    time.sleep(0.2)
            none, some = [None] * ADAPTERS, [f"a{i}" for i in range(ADAPTERS)]
            run_round(port, none, options), run_round(port, some, options)
            rates = {"none": [], "one": [], "eight": []}
            for _ in range(options.rounds):
                rates["none"].append(run_round(port, none, options))
                rates["one"].append(run_round(port, ["a0"] * ADAPTERS, options))
                rates["eight"].append(run_round(port, some, options))
        finally:
            server.terminate()
            server.wait()
    medians = {name: statistics.median(values) for name, values in rates.items()}
    print(f"rank {options.rank} of {options.modules}, {options.dtype}, {'with' if options.drafts else 'without'} drafts: "
          + ", ".join(f"{name} {value:.1f} tokens/s" for name, value in medians.items())
          + f"; one adapter {medians['one'] / medians['none']:.3f}, eight {medians['eight'] / medians['none']:.3f} of none")


main()
