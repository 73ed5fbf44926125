#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Losses and gradients of the trainers of MoA, DFlash and DSpark on one batch.

    python tools/head_goldens/context_training.py [out_dir]        default: tests/data/heads

Needs torch, numpy and safetensors. Weights and the target's states are functions of their names (common.fake).
"""

import json
import math

import torch
import torch.nn.functional as F

from common import Layer, Target, attend, causal, fake, layer_shapes, output_folder, rms_norm

TARGET_LAYERS = 2
WINDOWS, LENGTH = 2, 20
SEED = 5
KV_HEADS, MLP = 2, 40
BLOCK, ANCHORS, GAMMA, MASK = 5, 3, 4.0, 280
TAPS = [0, 1]  # DFlash and DSpark: outputs of these layers


def mix64(x):
    mask = 2**64 - 1
    x = (x + 0x9E3779B97F4A7C15) & mask
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & mask
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & mask
    return x ^ (x >> 31)


def tokens_of(window):
    return [(i * i * 7 + 3 * i + window * 13) % 280 for i in range(LENGTH)]


def counted_of(window):
    # The first window begins with a prompt of five tokens; the second is a text of sixteen tokens.
    return torch.tensor([float(i >= 5) if window == 0 else float(1 <= i < 16) for i in range(LENGTH)])


def states(name, window, *shape):
    return 5.0 * fake(name, (WINDOWS, LENGTH) + shape)[window]


def shifted(x, by):
    return torch.cat([x[by:], torch.zeros(by)])


class Head:
    """Trainable tensors by their published names."""

    def __init__(self, target):
        self.target, self.leaves = target, {}

    def leaf(self, name, shape):
        if name not in self.leaves:
            self.leaves[name] = fake(name, shape).requires_grad_(True)
        return self.leaves[name]

    def layer(self, prefix, hidden, heads, kv_heads, head_dim, mlp, qk_norm=False):
        shapes = layer_shapes(hidden, heads, kv_heads, head_dim, mlp, qk_norm)
        tensors = {name: self.leaf(prefix + name, shape) for name, shape in shapes.items()}
        return Layer(tensors.get, heads, kv_heads, head_dim, self.target.theta)


def moa_loss(head, tli, uses_lsa, uses_cross):
    target = head.target
    hidden, heads = target.hidden, target.heads
    kv_hidden = 2 * target.kv_heads * target.head_dim
    sa = head.layer("self_attention.", hidden, heads, KV_HEADS, hidden // heads, MLP)
    if uses_cross:
        ca = head.layer("cross_attention.", hidden, heads, KV_HEADS, hidden // heads, MLP)
    if uses_cross and uses_lsa:
        lsa = head.layer("layer_self_attention.", kv_hidden, heads, KV_HEADS, kv_hidden // heads, MLP)
        to_hidden = head.leaf("Ekv2E.weight", (hidden, kv_hidden))
        bias = head.leaf("Ekv2E.bias", (hidden,))
    places = torch.arange(LENGTH)
    distribution = distance = early_distance = 0.0
    rows = sum(shifted(counted_of(w), 1).sum() for w in range(WINDOWS))
    for window in range(WINDOWS):
        counted, weight = counted_of(window), shifted(counted_of(window), 1)
        every = 6 + mix64(SEED ^ mix64(window)) % 9
        known = (counted == 0) | (places % every == 0)
        start = torch.cummax(torch.where(known, places, 0), 0).values
        last_hidden = states("hidden", window, hidden)
        x, _ = sa.run(target.embed(tokens_of(window)), places, causal(LENGTH))
        if uses_cross:
            if uses_lsa:
                stacked = states("keys_values", window, TARGET_LAYERS, target.kv_heads, 2, target.head_dim)
                everything = torch.ones(TARGET_LAYERS, TARGET_LAYERS, dtype=torch.bool)
                layers = torch.arange(TARGET_LAYERS)
                mean = torch.stack([lsa.run(token.flatten(1), layers, everything)[0].mean(0) for token in stacked])
                context = mean @ to_hidden.T + bias
            else:
                context = last_hidden
            k, v = ca.key_value(ca.norm("input_layernorm", context), places)
            q = ca.query(ca.norm("input_layernorm", x), places)
            x = ca.finish(x, attend(q, k, v, places[None, :] <= start[:, None]))
        if tli > 0:
            truth = states("features", window, hidden)
            x = torch.where(known[:, None], truth, x)
            early_distance = early_distance + (F.smooth_l1_loss(x, truth, reduction="none").mean(-1) * weight).sum()
            entries = states("keys_values", window, TARGET_LAYERS, target.kv_heads, 2, target.head_dim)
            is_known = places[None, :] <= start[:, None]
            seen = torch.cat([is_known, ~is_known & causal(LENGTH)], 1)
            for number in range(TARGET_LAYERS - tli, TARGET_LAYERS):
                x, _ = target.layers[number].run(x, places, seen, before=entries[:, number].unbind(2))
            x = target.norm(x)
        distance = distance + (F.smooth_l1_loss(x, last_hidden, reduction="none").mean(-1) * weight).sum()
        p, q = target.head(last_hidden).log_softmax(-1), target.head(x).log_softmax(-1)
        distribution = distribution + ((p.exp() * (p - q)).sum(-1) * weight).sum()
    features = distance if tli == 0 else 0.5 * distance + 0.5 * early_distance
    return (0.1 * distribution + features) / rows


def blocks(head, block, following):
    """Yields (window, first place, states of the block's places)."""
    target = head.target
    hidden = target.hidden
    fc = head.leaf("fc.weight", (hidden, len(TAPS) * hidden))
    hidden_norm = head.leaf("hidden_norm.weight", (hidden,))
    norm = head.leaf("norm.weight", (hidden,))
    layers = [
        head.layer(f"layers.{i}.", hidden, target.heads, target.kv_heads, target.head_dim, MLP, True) for i in range(2)
    ]
    places = torch.arange(LENGTH)
    for window in range(WINDOWS):
        context = rms_norm(states("features", window, len(TAPS) * hidden) @ fc.T, hidden_norm)
        for i in range(ANCHORS):
            span = LENGTH - following - 1
            begin, end = i * span // ANCHORS, (i + 1) * span // ANCHORS
            anchor = 1 + begin + mix64(SEED ^ mix64(window * ANCHORS + i)) % (end - begin)
            positions = anchor + torch.arange(block)
            x = target.embed([tokens_of(window)[anchor]] + [MASK] * (block - 1))
            for layer in layers:
                y = layer.norm("input_layernorm", x)
                before, own = layer.key_value(context[:anchor], places[:anchor]), layer.key_value(y, positions)
                k, v = torch.cat([before[0], own[0]]), torch.cat([before[1], own[1]])
                x = layer.finish(x, attend(layer.query(y, positions), k, v, torch.ones(block, len(k)).bool()))
            yield window, anchor, rms_norm(x, norm)


def dflash_loss(head):
    total = weights = 0.0
    for window, anchor, x in blocks(head, BLOCK, BLOCK - 1):
        logits, tokens, counted = head.target.head(x), tokens_of(window), counted_of(window)
        for place in range(1, BLOCK):
            weight = counted[anchor + place] * math.exp(-(place - 1) / GAMMA)
            total = total - weight * logits[place].log_softmax(-1)[tokens[anchor + place]]
            weights = weights + weight
    return total / weights


def dspark_loss(head):
    target, rank = head.target, 6
    vocab = target.vocab
    w1, w2 = (head.leaf(f"markov_head.markov_w{i}.weight", (vocab, rank)) for i in (1, 2))
    proj = head.leaf("confidence_head.proj.weight", (1, target.hidden + rank))
    bias = head.leaf("confidence_head.proj.bias", (1,))
    total = weights = 0.0
    for window, anchor, x in blocks(head, BLOCK, BLOCK):
        tokens, counted = tokens_of(window), counted_of(window)
        for place in range(BLOCK):
            at = anchor + place
            latent = w1[tokens[at]]
            own = (target.head(x[place]) + w2 @ latent).log_softmax(-1)
            truth = target.head(states("hidden", window, target.hidden)[at]).softmax(-1)
            token = -own[tokens[at + 1]]
            distance = (own.exp() - truth).abs().sum()
            accepted = torch.minimum(own.exp(), truth).sum().detach()
            logit = proj[0] @ torch.cat([x[place], latent]) + bias[0]
            confidence = F.binary_cross_entropy_with_logits(logit, accepted)
            weight = counted[at + 1] * math.exp(-place / GAMMA)
            total = total + weight * (0.1 * token + 0.9 * distance + 1.0 * confidence)
            weights = weights + weight
    return total / weights


def short(x):
    return float(f"{x.item():.7g}")


def golden(arguments, loss_of):
    head = Head(Target("llama", TARGET_LAYERS))
    loss = loss_of(head)
    loss.backward()
    gradients = {}
    for name, leaf in head.leaves.items():
        flat = leaf.grad.flatten()
        gradients[name] = {
            "norm": short(flat.norm()),
            "some": [short(x) for x in flat[:: max(1, len(flat) // 7)]],
        }
    return {"arguments": arguments, "loss": short(loss), "gradients": gradients}


def main():
    out = output_folder()
    shape = f"--kv-heads {KV_HEADS} --mlp {MLP}"
    cases = [
        golden(f"{shape}", lambda head: moa_loss(head, 0, True, True)),
        golden(f"{shape} --tli 1", lambda head: moa_loss(head, 1, True, True)),
        golden(f"{shape} --no-lsa", lambda head: moa_loss(head, 0, False, True)),
        golden(f"{shape} --no-cross --tli 1", lambda head: moa_loss(head, 1, True, False)),
    ]
    for case in cases:
        case["kind"] = "moa"
    dflash = golden(f"--mlp {MLP} --block {BLOCK} --anchors {ANCHORS} --gamma {GAMMA} --mask-token {MASK} "
                    f"--layer-ids 0,1 --layers 2", dflash_loss)
    cases.append(dflash | {"kind": "dflash"})
    dspark = golden(f"--mlp {MLP} --block {BLOCK} --anchors {ANCHORS} --gamma {GAMMA} --mask-token {MASK} "
                    f"--layer-ids 0,1 --layers 2 --rank 6", dspark_loss)
    cases.append(dspark | {"kind": "dspark"})
    (out / "context_training.json").write_text(json.dumps({
        "windows": WINDOWS, "length": LENGTH, "seed": SEED,
        "tokens": [tokens_of(w) for w in range(WINDOWS)],
        "counted": [counted_of(w).tolist() for w in range(WINDOWS)],
        "cases": cases,
    }) + "\n")


if __name__ == "__main__":
    main()
