#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goldens of training: loss and gradients of every kind of learned drafter on one small batch.

    python tools/head_goldens/training.py [out_dir]        default: tests/data/heads

Needs torch, numpy and safetensors (made with torch 2.x). Weights and the target's states are functions of their
names (common.fake). The code follows the published descriptions with dense masks. These are EAGLE-3's training-time
test (2503.01840), P-EAGLE's masks, and DeepSeek-V3's module unrolled the same way. Others are Medusa-1's decayed
cross-entropy (2401.10774), EAGLE's feature regression (2401.15077), a draft model distilled by either divergence, and
PARD's with masks (2504.18583). EAGLE-3 also has the losses of the acceptance rate (2602.23881), and EAGLE-3.1's norms. """

import json

import torch
import torch.nn.functional as F
from common import Layer, Target, attend, causal, fake, output_folder, rms_norm, rope
from common import layer_shapes as common_shapes

WINDOWS, LENGTH, TAPS, STEPS = 2, 9, 2, 3
SAMPLES = 6
DRAFT_LAYERS = 2
PARD_MASK = 7


def batch(target):
    tokens = torch.tensor([[(7 * w + 3 * t * t + t) % target.vocab for t in range(LENGTH)] for w in range(WINDOWS)])
    counted = torch.ones(WINDOWS, LENGTH)
    counted[0, :4] = 0  # a prompt
    counted[1, 7:] = 0  # padding
    hidden = fake("hidden", [WINDOWS, LENGTH, target.hidden]) * 10
    features = fake("features", [WINDOWS, LENGTH, TAPS * target.hidden]) * 10
    return tokens, counted, hidden, features


def ahead(x, by):
    """Moves column t + by to column t; the last `by` columns are zeros."""
    out = torch.zeros_like(x)
    out[:, : LENGTH - by] = x[:, by:]
    return out


class Unrolled:
    """A decoder layer that runs again on its own outputs: row t sees step 0 of rows up to t and its own later steps."""

    def __init__(self, target, weights, prefix):
        self.target, self.get, self.prefix = target, weights, prefix
        self.keys, self.values = [], []

    def weight(self, name):
        return self.get(self.prefix + name + ".weight")

    def attend(self, x):
        target, step = self.target, len(self.keys)
        positions = torch.arange(LENGTH) + step
        out = []
        split = lambda y, heads: y.unflatten(-1, (heads, target.head_dim))
        turn = lambda y: torch.stack([rope(w, positions, target.theta) for w in y])
        q = turn(split(F.linear(x, self.weight("self_attn.q_proj")), target.heads))
        self.keys.append(turn(split(F.linear(x, self.weight("self_attn.k_proj")), target.kv_heads)))
        self.values.append(split(F.linear(x, self.weight("self_attn.v_proj")), target.kv_heads))
        group = target.heads // target.kv_heads
        for w in range(WINDOWS):
            keys = torch.cat([k[w] for k in self.keys]).repeat_interleave(group, 1)
            values = torch.cat([v[w] for v in self.values]).repeat_interleave(group, 1)
            mask = torch.cat([torch.ones(LENGTH, LENGTH).tril()] + [torch.eye(LENGTH)] * step, 1).bool()
            scores = torch.einsum("rhd,ehd->hre", q[w], keys) / target.head_dim**0.5
            distribution = scores.masked_fill(~mask, float("-inf")).softmax(-1)
            out.append(torch.einsum("hre,ehd->rhd", distribution, values).flatten(1))
        return F.linear(torch.stack(out), self.weight("self_attn.o_proj"))

    def mlp(self, x):
        y = rms_norm(x, self.weight("post_attention_layernorm"))
        gated = F.silu(F.linear(y, self.weight("mlp.gate_proj"))) * F.linear(y, self.weight("mlp.up_proj"))
        return F.linear(gated, self.weight("mlp.down_proj"))


def divergence(logits, distribution, weight):
    """KL(distribution || softmax(logits)), averaged over the rows by weight."""
    rows = (torch.xlogy(distribution, distribution) - distribution * logits.log_softmax(-1)).sum(-1)
    return (rows * weight).sum() / weight.sum()


def acceptance_loss(logits, distribution, weight, objective):
    """The losses of arXiv 2602.23881, where alpha is the mass that both distributions share."""
    q = logits.softmax(-1)
    alpha = torch.minimum(q, distribution).sum(-1)
    kl = (torch.xlogy(distribution, distribution) - distribution * logits.log_softmax(-1)).sum(-1)
    share = torch.exp(-3 * alpha.detach())
    rows = {"tv": 1 - alpha, "nla": -alpha.log(), "lk": share * kl + (1 - share) * (1 - alpha)}[objective]
    return (rows * weight).sum() / weight.sum()


def eagle3(target, weights, mask=None, normed=False, objective=None):
    """With a token `mask` steps after the first read it and weights("mask_hidden"), as P-EAGLE's do. `normed`: with the
    norms of EAGLE-3.1 (2605.09992)."""
    tokens, counted, hidden, features = batch(target)
    if normed:
        features = torch.cat([rms_norm(tap, weights(f"fc_norm.{i}.weight"))
                              for i, tap in enumerate(features.chunk(TAPS, -1))], -1)
    kept = torch.arange(0, target.vocab, 3)
    layer = Unrolled(target, weights, "midlayer.")
    state = F.linear(features, weights("fc.weight"))
    target_logits = target.head(hidden)
    inside = torch.isin(target_logits.argmax(-1), kept).float()
    total = 0
    for step in range(STEPS):
        read = ahead(tokens, 1 + step)
        if step > 0 and mask is not None:
            read = torch.full_like(read, mask)
            state = F.linear(weights("mask_hidden"), weights("fc.weight")).expand_as(state)
        e = target.embed(read.tolist())
        a = torch.cat([rms_norm(e, weights("midlayer.input_layernorm.weight")),
                       rms_norm(state, weights("midlayer.hidden_norm.weight"))], -1)
        state = state + layer.attend(a)
        state = state + layer.mlp(state)
        last = rms_norm(state, weights("norm.weight"))
        state = last if normed else state
        logits = F.linear(last, weights("lm_head.weight"))
        distribution = ahead(target_logits, 1 + step)[..., kept].softmax(-1)
        weight = ahead(counted, 2 + step) * ahead(inside, 1 + step)
        loss = acceptance_loss(logits, distribution, weight, objective) if objective else divergence(
            logits, distribution, weight)
        total = total + 0.8**step * loss
    return total


def mtp(target, weights):
    tokens, counted, hidden, _ = batch(target)
    prefix = "model.layers.2."
    layer = Unrolled(target, weights, prefix)
    state, total = hidden, 0
    for step in range(STEPS):
        e = target.embed(ahead(tokens, 1 + step).tolist())
        x = torch.cat([rms_norm(e, weights(prefix + "enorm.weight")), rms_norm(state, weights(prefix + "hnorm.weight"))], -1)
        x = F.linear(x, weights(prefix + "eh_proj.weight"))
        x = x + layer.attend(rms_norm(x, weights(prefix + "input_layernorm.weight")))
        state = x + layer.mlp(x)
        logits = target.head(rms_norm(state, weights(prefix + "shared_head.norm.weight")))
        distribution = target.head(ahead(hidden, 1 + step)).softmax(-1)
        total = total + 0.8**step * divergence(logits, distribution, ahead(counted, 2 + step))
    return total


def eagle(target, weights):
    tokens, counted, hidden, _ = batch(target)
    layer = Unrolled(target, weights, "layers.0.")
    e = target.embed(ahead(tokens, 1).tolist())
    x = F.linear(torch.cat([e, hidden], -1), weights("fc.weight"), weights("fc.bias"))
    x = x + layer.attend(x)
    state = x + layer.mlp(x)
    weight = ahead(counted, 2)
    distribution = target.head(ahead(hidden, 1)).softmax(-1)
    distance = F.smooth_l1_loss(state, ahead(hidden, 1), reduction="none").mean(-1)
    return 0.1 * divergence(target.head(state), distribution, weight) + (distance * weight).sum() / weight.sum()


def medusa(target, weights):
    tokens, counted, hidden, _ = batch(target)
    total = 0
    for k in range(3):
        block = hidden + F.silu(F.linear(hidden, weights(f"{k}.0.linear.weight"), weights(f"{k}.0.linear.bias")))
        logits = F.linear(block, weights(f"{k}.1.weight"))
        rows = F.cross_entropy(logits.transpose(1, 2), ahead(tokens, k + 2), reduction="none")
        weight = ahead(counted, k + 2)
        total = total + 0.8**k * (rows * weight).sum() / weight.sum()
    return total


def draft(target, weights, is_reverse):
    """A small Llama that is distilled: row t reads the tokens up to t; a quarter of the distribution is moved to its
    likeliest token."""
    heads, kv_heads, dim, hard = 2, 1, 32, 0.25
    tokens, counted, hidden, _ = batch(target)
    positions = torch.arange(LENGTH)
    states = []
    for window in tokens:
        x = weights("embedding")[window]
        for i in range(DRAFT_LAYERS):
            get = lambda name: weights(f"layers.{i}.{name}")
            qkv = F.linear(rms_norm(x, get("attention_norm")), get("qkv")).unflatten(-1, (heads + 2 * kv_heads, dim))
            q, k, v = qkv.split([heads, kv_heads, kv_heads], 1)
            mixed = attend(rope(q, positions, 10000.0), rope(k, positions, 10000.0), v, causal(LENGTH))
            x = x + F.linear(mixed, get("output"))
            gate, up = F.linear(rms_norm(x, get("ffn_norm")), get("gate_up")).chunk(2, -1)
            x = x + F.linear(F.silu(gate) * up, get("down"))
        states.append(rms_norm(x, weights("final_norm")))
    logits = F.linear(torch.stack(states), weights("embedding"))
    distribution = target.head(hidden).softmax(-1)
    distribution = (1 - hard) * distribution + hard * F.one_hot(distribution.argmax(-1), target.vocab)
    weight = ahead(counted, 1)
    if not is_reverse:
        return divergence(logits, distribution, weight)
    own = logits.log_softmax(-1)
    return ((own.exp() * (own - distribution.log())).sum(-1) * weight).sum() / weight.sum()


def pard(target, weights):
    """A small Llama that reads masks after every beginning of the text: one run from the beginning for each."""
    tokens, counted, hidden, _ = batch(target)
    layers = [Layer(lambda name, i=i: weights.leaves.get(f"model.layers.{i}.{name}"), 2, 1, 32, 10000.0)
              for i in range(DRAFT_LAYERS)]
    embedding = weights("model.embed_tokens.weight")
    sums, weight_sums = [0] * STEPS, [0] * STEPS
    for w in range(WINDOWS):
        for t in range(LENGTH):
            x = embedding[torch.cat([tokens[w, :t + 1], torch.full((STEPS - 1,), PARD_MASK)])]
            for layer in layers:
                x, _ = layer.run(x, torch.arange(len(x)), causal(len(x)))
            logits = rms_norm(x, weights("model.norm.weight")) @ embedding.T
            for step in range(min(STEPS, LENGTH - 1 - t)):
                distribution = target.head(hidden[w, t + step]).softmax(-1)
                row = (distribution * (distribution.log() - logits[t + step].log_softmax(-1))).sum()
                sums[step] = sums[step] + counted[w, t + 1 + step] * row
                weight_sums[step] = weight_sums[step] + counted[w, t + 1 + step]
    return sum(0.7**step * sums[step] / weight_sums[step] for step in range(STEPS))


def pard_shapes(target):
    shapes = {"model.embed_tokens.weight": [target.vocab, 64], "model.norm.weight": [64]}
    for i in range(DRAFT_LAYERS):
        layer = common_shapes(64, 2, 1, 32, 96)
        shapes |= {f"model.layers.{i}.{name}": shape for name, shape in layer.items()}
    return shapes


def draft_shapes(target):
    hidden, qkv, ffn = 64, 4 * 32, 96
    shapes = {"embedding": [target.vocab, hidden], "final_norm": [hidden]}
    for i in range(DRAFT_LAYERS):
        shapes |= {f"layers.{i}.{name}": shape for name, shape in {
            "attention_norm": [hidden], "qkv": [qkv, hidden], "output": [hidden, hidden], "ffn_norm": [hidden],
            "gate_up": [2 * ffn, hidden], "down": [hidden, ffn]}.items()}
    return shapes


class Weights:
    """Trainable fake tensors by name, with the given shapes."""

    def __init__(self, shapes):
        self.leaves = {name: fake(name, shape).requires_grad_(True) for name, shape in shapes.items()}

    def __call__(self, name):
        return self.leaves[name]


def layer_shapes(target, prefix, width, has_input_norm):
    hidden, q, kv, ffn = target.hidden, target.heads * target.head_dim, target.kv_heads * target.head_dim, 64
    shapes = {"self_attn.q_proj": [q, width], "self_attn.k_proj": [kv, width], "self_attn.v_proj": [kv, width],
              "self_attn.o_proj": [hidden, q], "post_attention_layernorm": [hidden], "mlp.gate_proj": [ffn, hidden],
              "mlp.up_proj": [ffn, hidden], "mlp.down_proj": [hidden, ffn]}
    if has_input_norm:
        shapes["input_layernorm"] = [hidden]
    return {f"{prefix}{name}.weight": shape for name, shape in shapes.items()}


def kinds(target):
    hidden, vocab = target.hidden, target.vocab
    shapes = {"fc.weight": [hidden, TAPS * hidden], "midlayer.hidden_norm.weight": [hidden],
              **layer_shapes(target, "midlayer.", 2 * hidden, True), "norm.weight": [hidden],
              "lm_head.weight": [vocab // 3, hidden]}
    yield "eagle3", eagle3, shapes
    yield "peagle", lambda *given: eagle3(*given, mask=7), {**shapes, "mask_hidden": [1, 1, TAPS * hidden]}
    norms = {f"fc_norm.{i}.weight": [hidden] for i in range(TAPS)}
    yield "eagle3.1", lambda *given: eagle3(*given, normed=True), {**shapes, **norms}
    for objective in ("tv", "nla", "lk"):
        yield f"eagle3, {objective}", lambda *given, o=objective: eagle3(*given, objective=o), shapes
    prefix = "model.layers.2."
    yield "mtp", mtp, {prefix + "enorm.weight": [hidden], prefix + "hnorm.weight": [hidden],
                       prefix + "eh_proj.weight": [hidden, 2 * hidden], **layer_shapes(target, prefix, hidden, True),
                       prefix + "shared_head.norm.weight": [hidden]}
    yield "eagle", eagle, {"fc.weight": [hidden, 2 * hidden], "fc.bias": [hidden],
                           **layer_shapes(target, "layers.0.", hidden, False)}
    yield "medusa", medusa, {name: shape for k in range(3) for name, shape in {
        f"{k}.0.linear.weight": [hidden, hidden], f"{k}.0.linear.bias": [hidden],
        f"{k}.1.weight": [vocab, hidden]}.items()}
    yield "draft, forward", lambda *given: draft(*given, is_reverse=False), draft_shapes(target)
    yield "pard", pard, pard_shapes(target)
    yield "draft, reverse", lambda *given: draft(*given, is_reverse=True), draft_shapes(target)


def main():
    out = output_folder()
    target = Target("llama_tied", 2)
    goldens = {}
    for name, loss_of, shapes in kinds(target):
        weights = Weights(shapes)
        loss = loss_of(target, weights)
        loss.backward()
        gradients = {}
        for leaf, tensor in weights.leaves.items():
            flat = tensor.grad.flatten()
            picked = [i * len(flat) // SAMPLES for i in range(SAMPLES)]
            # The product with fake numbers depends on every element of the gradient.
            mixed = float((flat.double() * fake("probe." + leaf, [len(flat)]).double()).sum())
            gradients[leaf] = {"mixed": mixed, "samples": [float(flat[i]) for i in picked]}
        goldens[name] = {"loss": float(loss.detach()), "gradients": gradients}
    (out / "training.json").write_text(json.dumps(goldens, indent=1) + "\n")


if __name__ == "__main__":
    main()
