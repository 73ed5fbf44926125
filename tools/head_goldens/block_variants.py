#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goldens of block drafters beyond plain DFlash: layers with sliding windows, and DSpark (arXiv 2607.05147).

    python tools/head_goldens/block_variants.py [out_dir]        default: tests/data/heads

Needs torch, numpy and safetensors. Each block is computed by itself and from the beginning, with dense masks: no
cache. Weights are functions of their names (common.fake). The file holds the config and shapes of a checkpoint, and for
several texts the logits of every place after given tokens.
"""

import json
import math

import torch
import torch.nn.functional as F

from common import Layer, Target, attend, fake, layer_shapes, output_folder, rms_norm, rounded

LAYERS = 6  # layers of the target
MASK = 280
MLP, HEADS, KV_HEADS, HEAD_DIM = 72, 4, 2, 24
THETA = 50000.0
TOKENS = [7, 130, 22, 201, 5, 77, 19, 240, 163, 48, 11]  # the last one is pending
DRAFTED = [99, 3, 287, 150, 42, 8]  # tokens that may follow it
STRIDE = 9  # every ninth logit is kept


class Checkpoint:
    """Returns tensors by name and records the shapes that were asked for."""

    def __init__(self):
        self.shapes = {}

    def __call__(self, name, *shape):
        self.shapes[name] = shape
        return fake(name, shape)


class Drafter:
    """A block drafter. `windows`: by layer, None for one that sees everything; `ids`: the tokens that it proposes."""

    def __init__(self, target, target_layers, *, block, windows, own_ends=False, ids=None):
        self.target, self.target_layers, self.block, self.windows, self.ids = target, target_layers, block, windows, ids
        hidden = target.hidden
        self.get = get = Checkpoint()
        self.fc = get("fc.weight", hidden, len(target_layers) * hidden)
        self.context_norm, self.norm = get("hidden_norm.weight", hidden), get("norm.weight", hidden)
        shapes = layer_shapes(hidden, HEADS, KV_HEADS, HEAD_DIM, MLP, qk_norm=True)
        self.layers = []
        for index in range(len(windows)):
            tensors = {name: get(f"layers.{index}.{name}", *shape) for name, shape in shapes.items()}
            self.layers.append(Layer(tensors.get, HEADS, KV_HEADS, HEAD_DIM, THETA))
        self.embedding = get("embed_tokens.weight", target.vocab, hidden) if own_ends else None
        draft_vocab = target.vocab if ids is None else len(ids)
        self.head = get("lm_head.weight", draft_vocab, hidden) if own_ends else None

    def states(self, tokens):
        """The normalised states of the block that begins with the last token, [block, hidden]."""
        streams, _ = self.target.run(tokens[:-1])
        features = torch.cat([streams[i + 1] for i in self.target_layers], -1)  # outputs of these layers
        context = rms_norm(features @ self.fc.T, self.context_norm)
        start = len(tokens) - 1
        before, positions = torch.arange(start), start + torch.arange(self.block)
        block = [tokens[-1]] + [MASK] * (self.block - 1)
        x = self.target.embed(block) if self.embedding is None else self.embedding[torch.tensor(block)]
        for layer, window in zip(self.layers, self.windows):
            y = layer.norm("input_layernorm", x)
            of_context, of_block = layer.key_value(context, before), layer.key_value(y, positions)
            k, v = torch.cat([of_context[0], of_block[0]]), torch.cat([of_context[1], of_block[1]])
            distance = positions[:, None] - torch.arange(start + self.block)
            sees = torch.ones_like(distance).bool() if window is None else (distance >= 0) & (distance < window)
            x = layer.finish(x, attend(layer.query(y, positions), k, v, sees))
        return rms_norm(x, self.norm)

    def logits(self, states):
        if self.head is None:
            return self.target.head(states)
        return self.spread(states @ self.head.T, -math.inf)

    def spread(self, own, other):
        """Numbers by the drafter's tokens as numbers by the target's."""
        if self.ids is None:
            return own
        logits = torch.full((len(own), self.target.vocab), other)
        logits[:, torch.tensor(self.ids)] = own
        return logits


class Markov:
    def __init__(self, drafter, rank, *, reads_rank, bias):
        get, vocab = drafter.get, drafter.target.vocab
        self.drafter, self.reads_rank = drafter, reads_rank
        self.w1 = get("markov_head.markov_w1.weight", vocab, rank)
        self.w2 = get("markov_head.markov_w2.weight", vocab if drafter.ids is None else len(drafter.ids), rank)
        inputs = drafter.target.hidden + (rank if reads_rank else 0)
        self.proj = get("confidence_head.proj.weight", 1, inputs)
        self.bias = get("confidence_head.proj.bias", 1) if bias else None

    def logits(self, places, before, states):
        return places + self.drafter.spread(self.w1[torch.tensor(before)] @ self.w2.T, 0.0)

    def confidence(self, states, before):
        inputs = torch.cat([states, self.w1[torch.tensor(before)]], -1) if self.reads_rank else states
        return torch.sigmoid(F.linear(inputs, self.proj, self.bias))[:, 0]


class Gated(Markov):
    """The embedding of the token before times gates of the place's state and of the embedding."""

    def __init__(self, drafter, rank):
        super().__init__(drafter, rank, reads_rank=True, bias=True)
        self.gate = drafter.get("markov_head.gate_proj.weight", rank, drafter.target.hidden + rank)
        self.gate_bias = drafter.get("markov_head.gate_proj.bias", rank)

    def logits(self, places, before, states):
        embedded = self.w1[torch.tensor(before)]
        gates = torch.sigmoid(F.linear(torch.cat([states, embedded], -1), self.gate, self.gate_bias))
        return places + self.drafter.spread((gates * embedded) @ self.w2.T, 0.0)


class Recurrent(Markov):
    """A cell reads the tokens and the states of all places up to its own."""

    def __init__(self, drafter, rank):
        super().__init__(drafter, rank, reads_rank=False, bias=False)
        self.joint = drafter.get("markov_head.joint_proj.weight", 3 * rank, 2 * rank + drafter.target.hidden)
        self.joint_bias = drafter.get("markov_head.joint_proj.bias", 3 * rank)

    def logits(self, places, before, states):
        cell, outputs = torch.zeros(self.w1.shape[1]), []
        for token, state in zip(before, states):
            joint = F.linear(torch.cat([cell, self.w1[token], state]), self.joint, self.joint_bias)
            gate, candidate, output = joint.chunk(3)
            cell = torch.sigmoid(gate) * cell + (1 - torch.sigmoid(gate)) * torch.tanh(candidate)
            outputs.append(torch.tanh(output))
        return places + self.drafter.spread(torch.stack(outputs) @ self.w2.T, 0.0)


def layer_config(target, layers):
    return {"model_type": "qwen3", "hidden_size": target.hidden, "intermediate_size": MLP, "num_hidden_layers": layers,
            "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "head_dim": HEAD_DIM,
            "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "rope_theta": THETA, "vocab_size": target.vocab,
            "hidden_act": "silu"}


def window_config(windows):
    types = ["full_attention" if window is None else "sliding_attention" for window in windows]
    return {"layer_types": types, "use_sliding_window": True, "sliding_window": max(w or 0 for w in windows),
            "max_window_layers": 0}


def case(name, drafter, config, *, first, markov=None):
    """Golden of one checkpoint; `first` is the first place of a block that proposes a token."""
    texts = []
    for length in (len(TOKENS), 4, 2):
        tokens = TOKENS[-length:]
        states = drafter.states(tokens)[first:]
        before = ([tokens[-1]] + DRAFTED)[: len(states)]
        logits = drafter.logits(states)
        text = {"tokens": tokens, "before": before}
        if markov:
            logits = markov.logits(logits, before, states)
            text["confidence"] = rounded(markov.confidence(states, before))
        texts.append({**text, "logits": [rounded(row[::STRIDE]) for row in logits]})
    return {"name": name, "config": config, "shapes": drafter.get.shapes, "ids": drafter.ids, "texts": texts}


def sliding(target):
    windows = [None, 4, 4]
    drafter = Drafter(target, [1, 2, 3], block=5, windows=windows)
    config = {**layer_config(target, 3), **window_config(windows), "block_size": 5, "num_target_layers": LAYERS,
              "dflash_config": {"mask_token_id": MASK, "target_layer_ids": [1, 2, 3]}}
    return case("sliding", drafter, config, first=1)


def deepseek(target):
    drafter = Drafter(target, [0, 4], block=4, windows=[None, None], own_ends=True)
    markov = Markov(drafter, 8, reads_rank=True, bias=True)
    config = {**layer_config(target, 2), "architectures": ["Qwen3DSparkModel"], "block_size": 4, "mask_token_id": MASK,
              "target_layer_ids": [0, 4], "markov_rank": 8, "markov_head_type": "vanilla",
              "enable_confidence_head": True, "confidence_head_with_markov": True}
    return case("deepseek", drafter, config, first=0, markov=markov)


def speculators(target):
    ids = [i for i in range(target.vocab) if i * i % 7 in (1, 2) or i < 20]
    windows = [4, None]
    drafter = Drafter(target, [1, 5], block=6, windows=windows, own_ends=True, ids=ids)
    markov = Markov(drafter, 6, reads_rank=False, bias=False)
    layers = {**layer_config(target, 2), **window_config(windows)}
    config = {"architectures": ["DSparkDraftModel"], "speculators_model_type": "dspark", "draft_vocab_size": len(ids),
              "block_size": 6, "mask_token_id": MASK, "aux_hidden_state_layer_ids": [2, 6], "markov_rank": 6,
              "markov_head_type": "vanilla", "enable_confidence_head": True, "transformer_layer_config": layers}
    return case("speculators", drafter, config, first=1, markov=markov)


def other_head(target, name, kind, make):
    """DeepSeek's layout with another kind of head."""
    drafter = Drafter(target, [1, 3], block=5, windows=[None], own_ends=True)
    markov = make(drafter, 8)
    config = {**layer_config(target, 1), "architectures": ["Qwen3DSparkModel"], "block_size": 5, "mask_token_id": MASK,
              "target_layer_ids": [1, 3], "markov_rank": 8, "markov_head_type": kind, "enable_confidence_head": True,
              "confidence_head_with_markov": markov.reads_rank}
    return case(name, drafter, config, first=0, markov=markov)


def main():
    target = Target("qwen3", LAYERS)
    cases = [sliding(target), deepseek(target), speculators(target), other_head(target, "gated", "gated", Gated),
             other_head(target, "recurrent", "rnn", Recurrent)]
    golden = {"layers": LAYERS, "target": "qwen3", "stride": STRIDE, "cases": cases}
    text = json.dumps(golden).replace("-Infinity", "null")
    (output_folder() / "block_variants.json").write_text(text + "\n")


if __name__ == "__main__":
    torch.set_grad_enabled(False)
    main()
