#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden of a PARD draft model (arXiv 2504.18583): one pass predicts all tokens of a draft.

    python tools/head_goldens/pard.py [out_dir]        default: tests/data/heads

Needs torch, numpy and safetensors. A text and masks after it are computed from the beginning, with plain causal
attention: no cache. Weights are functions of their names (common.fake), shapes come from make_pard() in
tests/lossless/test_heads.cc. """

import json

import torch

from common import Layer, causal, fake, layer_shapes, output_folder, rms_norm, rounded

HIDDEN, HEADS, KV_HEADS, HEAD_DIM, MLP, VOCAB = 64, 4, 2, 16, 64, 288
MASK, PLACES, STRIDE = 280, 6, 9
TEXTS = [[7, 130, 22, 201, 5, 77, 19, 240, 163, 48, 11], [3, 250], [(11 * i * i + 5 * i + 17) % 280 for i in range(40)]]


def probabilities(tokens):
    """Logarithms of the probabilities at the places after a text, [PLACES, VOCAB]."""
    prefix = "model.layers.0."
    shapes = layer_shapes(HIDDEN, HEADS, KV_HEADS, HEAD_DIM, MLP)
    tensors = {name: fake(prefix + name, shape) for name, shape in shapes.items()}
    layer = Layer(tensors.get, HEADS, KV_HEADS, HEAD_DIM, 10000.0)
    rows = tokens + [MASK] * (PLACES - 1)
    x = fake("model.embed_tokens.weight", (VOCAB, HIDDEN))[torch.tensor(rows)]
    x, _ = layer.run(x, torch.arange(len(rows)), causal(len(rows)))
    x = rms_norm(x, fake("model.norm.weight", (HIDDEN,)))
    return (x @ fake("lm_head.weight", (VOCAB, HIDDEN)).T).log_softmax(-1)[-PLACES:]


def main():
    texts = [{"tokens": tokens, "places": [rounded(row[::STRIDE]) for row in probabilities(tokens)]} for tokens in TEXTS]
    (output_folder() / "pard.json").write_text(json.dumps({"stride": STRIDE, "texts": texts}) + "\n")


if __name__ == "__main__":
    torch.set_grad_enabled(False)
    main()
