#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goldens of DFlash2: DFlash with convolutions over the places of a block, and a selector of candidates.

    python tools/head_goldens/dflash2.py [out_dir]        default: tests/data/heads

Needs torch, numpy and safetensors. Each block is computed by itself and from the beginning, with dense masks: no
cache. Weights are functions of their names (common.fake). The file holds the config and shapes of a checkpoint, and for
several texts the scores of the candidates at every place after given tokens.
"""

import json

import torch
import torch.nn.functional as F

from block_variants import (DRAFTED, HEAD_DIM, HEADS, KV_HEADS, LAYERS, MASK, MLP, THETA, TOKENS, Checkpoint)
from common import Layer, Target, attend, layer_shapes, output_folder, rms_norm, rounded

BLOCK, TAPS, GROUP, RANK, TOP_K = 6, 3, 16, 8, 12
TARGET_LAYERS = [1, 3]
WINDOWS = [5, None]  # the first layer sees a window and no later places


class Convolution:
    """A tap o of a place weighs the place o before it, channel by channel; a block begins with zeros."""

    def __init__(self, get, prefix, hidden):
        self.base = get(prefix + "base_kernel", 2, TAPS, hidden)
        self.projection = get(prefix + "kernel_projection.weight", 2 * TAPS * (hidden // GROUP), hidden)

    def kernels(self, x):
        """The weights of the input's and of the output's side, each [places, TAPS, hidden]."""
        dynamic = (x @ self.projection.T).unflatten(-1, (2, TAPS, -1)).repeat_interleave(GROUP, -1)
        return [self.base[side] + dynamic[:, side] for side in range(2)]

    @staticmethod
    def apply(kernel, x):
        y = torch.zeros_like(x)
        for place in range(x.shape[0]):
            for tap in range(min(TAPS, place + 1)):
                y[place] += kernel[place, tap] * x[place - tap]
        return y


class Drafter:
    def __init__(self, target):
        self.target = target
        hidden = target.hidden
        self.get = get = Checkpoint()
        self.fc = get("fc.weight", hidden, len(TARGET_LAYERS) * hidden)
        self.context_norm, self.norm = get("hidden_norm.weight", hidden), get("norm.weight", hidden)
        self.layers = []
        for index in range(len(WINDOWS)):
            shapes = layer_shapes(hidden, HEADS, KV_HEADS, HEAD_DIM, MLP, qk_norm=True)
            tensors = {name: get(f"layers.{index}.{name}", *shape) for name, shape in shapes.items()}
            layer = Layer(tensors.get, HEADS, KV_HEADS, HEAD_DIM, THETA)
            self.layers.append((layer, *(Convolution(get, f"layers.{index}.{kind}_conv.", hidden)
                                         for kind in ("attention", "mlp"))))
        self.gate = get("candidate_selector.hidden_projection.weight", RANK, hidden)
        self.before = get("candidate_selector.predecessor_codebook", target.vocab, RANK)
        self.after = get("candidate_selector.successor_codebook", target.vocab, RANK)

    def config(self):
        return {
            "hidden_size": self.target.hidden, "intermediate_size": MLP, "num_hidden_layers": len(WINDOWS),
            "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "head_dim": HEAD_DIM, "rms_norm_eps": 1e-5,
            "rope_theta": THETA, "vocab_size": self.target.vocab, "hidden_act": "silu", "max_position_embeddings": 256,
            "num_target_layers": LAYERS, "use_sliding_window": True, "sliding_window": WINDOWS[0],
            "max_window_layers": 0,
            "layer_types": ["full_attention" if window is None else "sliding_attention" for window in WINDOWS],
            "dflash_config": {
                "block_size": BLOCK, "mask_token_id": MASK, "target_layer_ids": TARGET_LAYERS,
                "conv_kernel_size": TAPS, "conv_group_size": GROUP, "selector_rank": RANK, "selector_top_k": TOP_K,
            },
        }

    def states(self, tokens):
        streams, _ = self.target.run(tokens[:-1])
        features = torch.cat([streams[i + 1] for i in TARGET_LAYERS], -1)
        context = rms_norm(features @ self.fc.T, self.context_norm)
        start = len(tokens) - 1
        before, positions = torch.arange(start), start + torch.arange(BLOCK)
        x = self.target.embed([tokens[-1]] + [MASK] * (BLOCK - 1))
        for (layer, attention_conv, mlp_conv), window in zip(self.layers, WINDOWS):
            y = layer.norm("input_layernorm", x)
            kernels = attention_conv.kernels(y)
            y = Convolution.apply(kernels[0], y)
            of_context, of_block = layer.key_value(context, before), layer.key_value(y, positions)
            k, v = torch.cat([of_context[0], of_block[0]]), torch.cat([of_context[1], of_block[1]])
            distance = positions[:, None] - torch.arange(start + BLOCK)
            sees = torch.ones_like(distance).bool() if window is None else (distance >= 0) & (distance < window)
            attended = layer.linear("self_attn.o_proj", attend(layer.query(y, positions), k, v, sees))
            x = x + Convolution.apply(kernels[1], attended)
            y = layer.norm("post_attention_layernorm", x)
            kernels = mlp_conv.kernels(y)
            y = Convolution.apply(kernels[0], y)
            gated = F.silu(layer.linear("mlp.gate_proj", y)) * layer.linear("mlp.up_proj", y)
            x = x + Convolution.apply(kernels[1], layer.linear("mlp.down_proj", gated))
        return rms_norm(x, self.norm)

    def scores(self, state, before):
        """The candidates of a place, in the order of their ids, and their scores after the token `before`."""
        logits = self.target.head(state[None])[0]
        candidates = sorted(torch.topk(logits, TOP_K).indices.tolist())
        latent = self.before[before] * (self.gate @ state)
        return candidates, torch.stack([logits[c] + latent @ self.after[c] for c in candidates])


def main():
    out = output_folder()
    drafter = Drafter(Target("qwen3", LAYERS))
    texts = []
    for length in (len(TOKENS), 4, 2):
        tokens = TOKENS[-length:]
        places = []
        for state, before in zip(drafter.states(tokens)[1:], [tokens[-1]] + DRAFTED):
            candidates, scores = drafter.scores(state, before)
            places.append({"before": before, "candidates": candidates, "scores": rounded(scores)})
        texts.append({"tokens": tokens, "places": places})
    golden = {"target": "qwen3", "layers": LAYERS, "config": drafter.config(), "shapes": drafter.get.shapes,
              "texts": texts}
    (out / "dflash2.json").write_text(json.dumps(golden) + "\n")


if __name__ == "__main__":
    torch.set_grad_enabled(False)
    main()
