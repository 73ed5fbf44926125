#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goldens of the DFlash block drafter (arXiv 2602.06036): one forward pass proposes a whole block.

    python tools/head_goldens/dflash.py [out_dir]        default: tests/data/heads

Needs torch, numpy and safetensors. Weights are functions of their names (common.fake).
"""

import json

import torch

from common import Layer, Target, attend, fake, layer_shapes, output_folder, rms_norm, rounded

LAYERS = 6  # layers of the target
DRAFT_LAYERS = 3
TARGET_LAYER_IDS = [1, 2, 3]  # the published default for 6 layers and 3 of them: round(1 + i * 2 / 2)
BLOCK = 5
MASK = 280
MLP, HEADS, KV_HEADS, HEAD_DIM = 72, 4, 2, 24
THETA = 50000.0
TOKENS = [7, 130, 22, 201, 5, 77, 19, 240, 163, 48, 11]  # the last one is pending


def draft_layer(index, hidden):
    prefix = f"layers.{index}."
    shapes = layer_shapes(hidden, HEADS, KV_HEADS, HEAD_DIM, MLP, qk_norm=True)
    tensors = {name: fake(prefix + name, shape) for name, shape in shapes.items()}
    return Layer(tensors.get, HEADS, KV_HEADS, HEAD_DIM, THETA)


def block_logits(target, tokens):
    """Returns the logits of the block's places after the pending token, [BLOCK - 1, vocabulary]."""
    hidden = target.hidden
    streams, _ = target.run(tokens[:-1])
    features = torch.cat([streams[i + 1] for i in TARGET_LAYER_IDS], -1)  # outputs of these layers
    context = features @ fake("fc.weight", (hidden, len(TARGET_LAYER_IDS) * hidden)).T
    context = rms_norm(context, fake("hidden_norm.weight", (hidden,)))
    start = len(tokens) - 1
    before = torch.arange(start)
    positions = start + torch.arange(BLOCK)
    x = target.embed([tokens[-1]] + [MASK] * (BLOCK - 1))
    sees_all = torch.ones(BLOCK, start + BLOCK, dtype=torch.bool)
    for index in range(DRAFT_LAYERS):
        layer = draft_layer(index, hidden)
        y = layer.norm("input_layernorm", x)
        of_context, of_block = layer.key_value(context, before), layer.key_value(y, positions)
        k, v = torch.cat([of_context[0], of_block[0]]), torch.cat([of_context[1], of_block[1]])
        x = layer.finish(x, attend(layer.query(y, positions), k, v, sees_all))
    return target.head(rms_norm(x, fake("norm.weight", (hidden,))))[1:]


def main():
    out = output_folder()
    cases = []
    for name in ("qwen3", "llama"):
        for length in (len(TOKENS), 4, 2):
            logits = block_logits(Target(name, LAYERS), TOKENS[-length:])
            cases.append({"target": name, "tokens": TOKENS[-length:], "logits": rounded(logits[:, ::9])})
    golden = {"layers": LAYERS, "block": BLOCK, "mask": MASK, "cases": cases}
    (out / "dflash.json").write_text(json.dumps(golden) + "\n")


if __name__ == "__main__":
    torch.set_grad_enabled(False)
    main()
