#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goldens of EAGLE (2401.15077), EAGLE-3 (2503.01840) and MTP (2412.19437) heads.

    python tools/head_goldens/recurrent.py [out_dir]        default: tests/data/heads

Needs torch, numpy and safetensors. Each path of a tree is computed by itself and from the beginning, with plain
causal attention: no cache, no tree mask. Weights, and the target's features of a text, are functions of their names
(common.fake). The file holds the config and shapes of a checkpoint, the paths, and the logits after them.
"""

import json
import math

import numpy as np
import torch
import torch.nn.functional as F
from common import Layer, Target, attend, causal, fake, output_folder, rms_norm, rounded

HEADS, KV_HEADS, HEAD_DIM, FFN = 4, 2, 16, 32  # of the drafters; other sizes are the target's
TARGET = Target("llama", 2)
HIDDEN, VOCAB, LAYERS = TARGET.hidden, TARGET.vocab, len(TARGET.layers)
LENGTH = 20
# Nodes in level order: parent (-1: the root) and token.
NODES = [(-1, 7), (-1, 250), (-1, 31), (0, 8), (0, 111), (2, 99), (3, 42), (5, 3)]
STRIDE = 3  # every third logit is kept

CONFIG = {
    "model_type": "llama",
    "hidden_size": HIDDEN,
    "vocab_size": VOCAB,
    "num_hidden_layers": 1,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS,
    "head_dim": HEAD_DIM,
    "intermediate_size": FFN,
    "rms_norm_eps": 1e-5,
    "hidden_act": "silu",
}


class Checkpoint:
    """Returns tensors by name and records the shapes that were asked for."""

    def __init__(self):
        self.shapes = {}

    def __call__(self, name, *shape):
        self.shapes[name] = shape
        return fake(name, shape)

    def layer(self, prefix, *, inputs=HIDDEN, bias=False, qk_norm=False, shift=0.0, theta=10000.0):
        """Returns a decoder layer without its input norm; `shift` is added to stored norms."""
        tensors = {}

        def add(name, *shape):
            tensors[name] = self(prefix + name, *shape) + (shift if "norm" in name else 0.0)

        for name, heads in (("q", HEADS), ("k", KV_HEADS), ("v", KV_HEADS)):
            add(f"self_attn.{name}_proj.weight", heads * HEAD_DIM, inputs)
            if bias:
                add(f"self_attn.{name}_proj.bias", heads * HEAD_DIM)
        if qk_norm:
            add("self_attn.q_norm.weight", HEAD_DIM)
            add("self_attn.k_norm.weight", HEAD_DIM)
        add("self_attn.o_proj.weight", HIDDEN, HEADS * HEAD_DIM)
        add("post_attention_layernorm.weight", HIDDEN)
        add("mlp.gate_proj.weight", FFN, HIDDEN)
        add("mlp.up_proj.weight", FFN, HIDDEN)
        add("mlp.down_proj.weight", HIDDEN, FFN)
        return Layer(tensors.get, HEADS, KV_HEADS, HEAD_DIM, theta)


def through(layer, inputs, residual):
    """Runs a layer over a whole text; `inputs` are normalised already."""
    positions = torch.arange(len(inputs))
    k, v = layer.key_value(inputs, positions)
    return layer.finish(residual, attend(layer.query(inputs, positions), k, v, causal(len(inputs))))


class Eagle:
    def __init__(self, get, layers=1, bias=True):
        self.fc, self.bias = get("fc.weight", HIDDEN, 2 * HIDDEN), get("fc.bias", HIDDEN) if bias else None
        self.layers = [get.layer(f"layers.{i}.", bias=bias) for i in range(layers)]
        # The first layer has no input norm.
        self.norms = [None] + [get(f"layers.{i}.input_layernorm.weight", HIDDEN) for i in range(1, layers)]

    def first(self, features):
        return features

    def states(self, states, tokens):
        x = F.linear(torch.cat([TARGET.embed(tokens), states], -1), self.fc, self.bias)
        for layer, norm in zip(self.layers, self.norms):
            x = through(layer, x if norm is None else rms_norm(x, norm), x)
        return x

    def logits(self, state):
        return TARGET.head(state)

    def next(self, state):
        return state


class Eagle3:
    def __init__(self, get, prefix, *, layers=1, taps=3, ids=None, own_embedding=False, theta=10000.0,
                 before_residual=False, before_fc=False, fc_norm=False, norm_output=False):
        self.ids, self.before_residual, self.norm_output = ids, before_residual, norm_output
        self.fc = get("fc.weight", HIDDEN, taps * HIDDEN)
        self.input_norm = get("input_norm.weight", taps * HIDDEN) if before_fc else None
        self.fc_norms = [get(f"fc_norm.{i}.weight", HIDDEN) for i in range(taps)] if fc_norm else None
        self.embedding_norm = get(prefix + "input_layernorm.weight", HIDDEN)
        self.hidden_norm = get(prefix + "hidden_norm.weight", HIDDEN)
        self.layers = [get.layer(prefix, inputs=2 * HIDDEN, theta=theta)]
        self.layers += [get.layer(f"layers.{i}.", theta=theta) for i in range(1, layers)]
        self.norms = [get(f"layers.{i}.input_layernorm.weight", HIDDEN) for i in range(1, layers)]
        self.norm = get("norm.weight", HIDDEN)
        self.head = get("lm_head.weight", VOCAB if ids is None else len(ids), HIDDEN)
        self.embedding = get("embed_tokens.weight", VOCAB, HIDDEN) if own_embedding else None

    def first(self, features):
        if self.input_norm is not None:
            features = rms_norm(features, self.input_norm)
        if self.fc_norms is not None:
            parts = zip(features.split(HIDDEN, -1), self.fc_norms)
            features = torch.cat([rms_norm(part, norm) for part, norm in parts], -1)
        return F.linear(features, self.fc)

    def states(self, states, tokens):
        embedded = TARGET.embed(tokens) if self.embedding is None else self.embedding[torch.tensor(tokens)]
        hidden = rms_norm(states, self.hidden_norm)
        inputs = torch.cat([rms_norm(embedded, self.embedding_norm), hidden], -1)
        x = through(self.layers[0], inputs, hidden if self.before_residual else states)
        for layer, norm in zip(self.layers[1:], self.norms):
            x = through(layer, rms_norm(x, norm), x)
        return x

    def logits(self, state):
        own = F.linear(rms_norm(state, self.norm), self.head)
        if self.ids is None:
            return own
        logits = torch.full((VOCAB,), -math.inf)
        logits[torch.tensor(self.ids)] = own
        return logits

    def next(self, state):
        return rms_norm(state, self.norm) if self.norm_output else state


class Module:
    """An MTP module. `names`: embedding norm, hidden norm, linear map, output norm."""

    def __init__(self, get, names, prefix, *, qk_norm=False, shift=0.0, post_norm=False):
        self.post_norm = post_norm
        self.embedding_norm, self.hidden_norm = (get(name, HIDDEN) + shift for name in names[:2])
        self.fc, self.norm = get(names[2], HIDDEN, 2 * HIDDEN), get(names[3], HIDDEN) + shift
        self.input_norm = get(prefix + "input_layernorm.weight", HIDDEN) + shift
        self.layer = get.layer(prefix, qk_norm=qk_norm, shift=shift)

    def first(self, features):
        return features

    def states(self, states, tokens):
        parts = rms_norm(TARGET.embed(tokens), self.embedding_norm), rms_norm(states, self.hidden_norm)
        x = F.linear(torch.cat(parts, -1), self.fc)
        return through(self.layer, rms_norm(x, self.input_norm), x)

    def logits(self, state):
        return TARGET.head(rms_norm(state, self.norm))

    def next(self, state):
        return rms_norm(state, self.norm) if self.post_norm else state


def recurrent(net):
    """Committed tokens are paired with the target's features, each drafted one with the state before it."""

    def logits_after(features, text, path):
        states, tokens = net.first(features), text[1:]
        out = net.states(states, tokens)
        for token in path:
            states, tokens = torch.cat([states, net.next(out[-1])[None]]), tokens + [token]
            out = net.states(states, tokens)
        return net.logits(out[-1])

    return logits_after


def chained(modules):
    """Module k reads at t the state of module k - 1 at t and token t + k (2412.19437, 2.2)."""

    def logits_after(features, text, path):
        states, count = features, len(text) - 1
        for k, module in enumerate(modules[: len(path) + 1], start=1):
            states = module.states(states, (text + path)[k : k + count])
        return modules[len(path)].logits(states[-1])

    return logits_after


def masked_logits(net, features, text, mask, masked_features, count):
    """Logits of `count` places after a text in one pass: P-EAGLE's token and features stand at all but the first."""
    states = torch.cat([net.first(features)] + [net.first(masked_features.view(1, -1))] * (count - 1))
    out = net.states(states, text[1:] + [mask] * (count - 1))
    return torch.stack([net.logits(state) for state in out[-count:]])


def features_of(taps):
    return fake("features", (LENGTH - 1, taps * HIDDEN)) * np.float32(5)


TEXT = [(11 * i * i + 5 * i + 17) % VOCAB for i in range(LENGTH)]


def case(name, get, config, logits_after, *, taps=1, ids=None, depth=3):
    text, features = TEXT, features_of(taps)
    paths = [[]]
    for parent, token in NODES:
        paths.append(paths[parent + 1] + [token])
    count = sum(len(path) <= depth for path in paths)
    return {
        "name": name,
        "config": config,
        "shapes": get.shapes,
        "ids": ids,
        "text": text,
        "parents": [parent for parent, _ in NODES][: count - 1],
        "tokens": [token for _, token in NODES][: count - 1],
        "logits": [rounded(logits_after(features, text, path)[::STRIDE]) for path in paths[:count]],
    }


def eagle3_cases():
    ids = [i for i in range(VOCAB) if i * i % 7 in (1, 2) or i < 20]
    # SafeAILab's configs often have no rope_theta: the base is then 10000.
    config = {**CONFIG, "architectures": ["LlamaForCausalLMEagle3"], "draft_vocab_size": len(ids)}
    get = Checkpoint()
    net = Eagle3(get, "midlayer.", ids=ids)
    taps = {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [0, 1, 2]}}
    yield case("eagle3", get, {**config, **taps}, recurrent(net), taps=3, ids=ids)
    get = Checkpoint()
    net = Eagle3(get, "midlayer.", taps=1, ids=ids, before_fc=True)
    own = {"norm_before_fc": True, "eagle_aux_hidden_state_layer_ids": [2]}
    yield case("eagle3_one_tap", get, {**config, **own}, recurrent(net), ids=ids)
    get = Checkpoint()
    net = Eagle3(get, "layers.0.", layers=2, taps=2, own_embedding=True, theta=500000.0, before_residual=True,
                 fc_norm=True, norm_output=True)
    nested = {**CONFIG, "num_hidden_layers": 2, "rope_theta": 500000.0}
    config = {"architectures": ["Eagle3Speculator"], "speculators_model_type": "eagle3", "draft_vocab_size": VOCAB,
              "norm_before_residual": True, "fc_norm": True, "norm_output": True,
              "eagle_aux_hidden_state_layer_ids": [1, 2], "transformer_layer_config": nested}
    yield case("eagle3_speculators", get, config, recurrent(net), taps=2)


def peagle_case():
    ids = [i for i in range(VOCAB) if i % 3 != 1]
    mask, places = 281, 5
    get = Checkpoint()
    net = Eagle3(get, "layers.0.", layers=2, ids=ids, before_residual=True)
    masked_features = get("mask_hidden", 1, 1, 3 * HIDDEN)
    config = {**CONFIG, "num_hidden_layers": 2, "architectures": ["LlamaForCausalLMEagle3"],
              "draft_vocab_size": len(ids), "norm_before_residual": True, "ptd_token_id": mask,
              "eagle_aux_hidden_state_layer_ids": [0, 1, 2]}
    made = case("peagle", get, config, recurrent(net), taps=3, ids=ids, depth=0)
    logits = masked_logits(net, features_of(3), TEXT, mask, masked_features, places)
    made["masked"] = [rounded(row[::STRIDE]) for row in logits]
    return made


def deepseek_module(get, index):
    prefix = f"model.layers.{LAYERS + index}."
    names = [prefix + name + ".weight" for name in ("enorm", "hnorm", "eh_proj", "shared_head.norm")]
    return Module(get, names, prefix)


def cases():
    get = Checkpoint()
    yield case("eagle", get, {**CONFIG, "architectures": ["LlamaForCausalLM"], "bias": True}, recurrent(Eagle(get)))
    get = Checkpoint()
    net = Eagle(get, layers=2, bias=False)
    yield case("eagle_two_layers", get, {**CONFIG, "num_hidden_layers": 2, "bias": False}, recurrent(net))
    yield from eagle3_cases()
    yield peagle_case()
    config = {**CONFIG, "num_hidden_layers": LAYERS}
    get = Checkpoint()
    yield case("mtp", get, {**config, "num_nextn_predict_layers": 1}, recurrent(deepseek_module(get, 0)))
    get = Checkpoint()
    modules = [deepseek_module(get, i) for i in range(3)]
    yield case("mtp_chained", get, {**config, "num_nextn_predict_layers": 3}, chained(modules), depth=2)
    get = Checkpoint()
    names = ["mtp.pre_fc_norm_embedding.weight", "mtp.pre_fc_norm_hidden.weight", "mtp.fc.weight", "mtp.norm.weight"]
    net = Module(get, names, "mtp.layers.0.", qk_norm=True, shift=1.0, post_norm=True)
    yield case("mtp_qwen", get, {**config, "mtp_num_hidden_layers": 1}, recurrent(net))


def main():
    out = output_folder()
    text = json.dumps({"stride": STRIDE, "cases": list(cases())}).replace("-Infinity", "null")
    (out / "recurrent.json").write_text(text + "\n")


if __name__ == "__main__":
    torch.set_grad_enabled(False)
    main()
