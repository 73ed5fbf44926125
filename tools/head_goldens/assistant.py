#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goldens of Gemma 4's assistant, which attends to keys and values of its target and makes none.

    python tools/head_goldens/assistant.py [out_dir]        default: tests/data/heads

Needs torch, numpy and safetensors. Weights, and the target's keys, values and states, are functions of their names
(common.fake); embeddings come from tests/data/models/gemma4. The file holds the config and shapes of two
checkpoints, without and with clusters of tokens, and for drafts of two levels the logits and states of every row.
"""

import json
import math

import torch
import torch.nn.functional as F
from safetensors import safe_open

from common import ROOT, fake, output_folder, rms_norm, rounded

HIDDEN, MLP, HEADS, WINDOW, TARGET_HIDDEN, VOCAB = 16, 40, 4, 5, 24, 288
TYPES = ["sliding_attention", "sliding_attention", "full_attention"]
HEAD_DIM = {"sliding_attention": 8, "full_attention": 16}
KV_HEADS = {"sliding_attention": 2, "full_attention": 1}  # of the target
CLUSTERS, USED_CLUSTERS = 24, 3
FIRST = [7, 130, 22]  # tokens of the first level's rows, each of a separate draft
SECOND = [99, 3, 287]
STRIDE = 9  # every ninth logit is kept


def config(clusters):
    text = {
        "model_type": "gemma4_text", "hidden_size": HIDDEN, "intermediate_size": MLP, "num_hidden_layers": len(TYPES),
        "num_attention_heads": HEADS, "num_key_value_heads": 2, "head_dim": 8, "vocab_size": VOCAB,
        "layer_types": TYPES, "sliding_window": WINDOW, "num_kv_shared_layers": len(TYPES), "attention_k_eq_v": True,
        "hidden_size_per_layer_input": 0, "vocab_size_per_layer_input": 0, "use_double_wide_mlp": False,
        "enable_moe_block": False, "hidden_activation": "gelu_pytorch_tanh", "rms_norm_eps": 1e-5,
        "max_position_embeddings": 256, "per_layer_config": {"2": {"head_dim": 16, "num_key_value_heads": 1}},
        "rope_parameters": {
            "full_attention": {"partial_rotary_factor": 0.25, "rope_theta": 1000000.0, "rope_type": "proportional"},
            "sliding_attention": {"rope_theta": 10000.0, "rope_type": "default"},
        },
    }
    return {
        "architectures": ["Gemma4AssistantForCausalLM"], "model_type": "gemma4_assistant",
        "backbone_hidden_size": TARGET_HIDDEN, "use_ordered_embeddings": clusters, "num_centroids": CLUSTERS,
        "centroid_intermediate_top_k": USED_CLUSTERS, "text_config": text,
    }


def shapes(clusters):
    found = {
        "model.embed_tokens.weight": (VOCAB, HIDDEN), "model.norm.weight": (HIDDEN,),
        "pre_projection.weight": (HIDDEN, 2 * TARGET_HIDDEN), "post_projection.weight": (TARGET_HIDDEN, HIDDEN),
    }
    for i, kind in enumerate(TYPES):
        prefix, q_size = f"model.layers.{i}.", HEADS * HEAD_DIM[kind]
        for norm in ("input", "post_attention", "pre_feedforward", "post_feedforward"):
            found[f"{prefix}{norm}_layernorm.weight"] = (HIDDEN,)
        found |= {
            prefix + "layer_scalar": (1,), prefix + "self_attn.q_norm.weight": (HEAD_DIM[kind],),
            prefix + "self_attn.q_proj.weight": (q_size, HIDDEN), prefix + "self_attn.o_proj.weight": (HIDDEN, q_size),
            prefix + "mlp.gate_proj.weight": (MLP, HIDDEN), prefix + "mlp.up_proj.weight": (MLP, HIDDEN),
            prefix + "mlp.down_proj.weight": (HIDDEN, MLP),
        }
    if clusters:
        found["masked_embedding.centroids.weight"] = (CLUSTERS, HIDDEN)
    return found


def ordering():
    """The tokens of all clusters, one after the other: a permutation without pattern."""
    return [(i * 133 + 7) % VOCAB for i in range(VOCAB)]


def rotate(q, position, kind):
    """q [heads, dim]. A quarter of the pairs of full layers turn, with angles that count all of them."""
    dim, half = HEAD_DIM[kind], HEAD_DIM[kind] // 2
    theta, turned = (10000.0, half) if kind == "sliding_attention" else (1000000.0, int(0.25 * dim // 2))
    frequency = torch.zeros(half)
    frequency[:turned] = theta ** (-torch.arange(turned, dtype=torch.float32) * 2 / dim)
    cos, sin = (position * frequency).cos(), (position * frequency).sin()
    a, b = q[:, :half], q[:, half:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class Assistant:
    def __init__(self, clusters, entries):
        self.clusters, self.entries = clusters, entries
        self.tensors = {name: fake(name, shape) for name, shape in shapes(clusters).items()}
        with safe_open(ROOT / "models/gemma4/model.safetensors", "pt") as file:
            self.embeddings = file.get_tensor("model.embed_tokens.weight").float() * math.sqrt(TARGET_HIDDEN)

    def attend(self, q, kind):
        """A row stands after all entries; with a window of w it sees the entries up to w + 1 before it."""
        shape = (self.entries, KV_HEADS[kind], HEAD_DIM[kind])
        k, v = fake("keys." + kind, shape), fake("values." + kind, shape)
        first = max(0, self.entries - WINDOW - 1) if kind == "sliding_attention" else 0
        group = HEADS // KV_HEADS[kind]
        k, v = (x[first:].repeat_interleave(group, 1) for x in (k, v))
        weights = torch.einsum("hd,ehd->he", q, k).softmax(-1)  # scores are not scaled
        return torch.einsum("he,ehd->hd", weights, v).flatten()

    def logits(self, x):
        table = self.tensors["model.embed_tokens.weight"]
        if not self.clusters:
            return table @ x
        best = torch.topk(self.tensors["masked_embedding.centroids.weight"] @ x, USED_CLUSTERS).indices
        tokens = torch.tensor(ordering()).view(CLUSTERS, -1)[best].flatten()
        known = table[tokens] @ x
        found = torch.full((VOCAB,), (known.min() - 1).item())
        found[tokens] = known
        return found

    def run(self, token, state):
        t = self.tensors
        x = t["pre_projection.weight"] @ torch.cat([self.embeddings[token], state])
        for i, kind in enumerate(TYPES):
            get = lambda name: t[f"model.layers.{i}.{name}"]
            y = rms_norm(x, get("input_layernorm.weight"))
            q = (get("self_attn.q_proj.weight") @ y).view(HEADS, HEAD_DIM[kind])
            q = rotate(rms_norm(q, get("self_attn.q_norm.weight")), self.entries, kind)
            y = get("self_attn.o_proj.weight") @ self.attend(q, kind)
            x = x + rms_norm(y, get("post_attention_layernorm.weight"))
            y = rms_norm(x, get("pre_feedforward_layernorm.weight"))
            y = F.gelu(get("mlp.gate_proj.weight") @ y, approximate="tanh") * (get("mlp.up_proj.weight") @ y)
            x = x + rms_norm(get("mlp.down_proj.weight") @ y, get("post_feedforward_layernorm.weight"))
            x = x * get("layer_scalar")
        x = rms_norm(x, t["model.norm.weight"])
        return self.logits(x), t["post_projection.weight"] @ x


def main():
    out = output_folder()
    cases = []
    for clusters in (False, True):
        for entries in (11, 3):
            assistant = Assistant(clusters, entries)
            rows = []
            for i, (first, second) in enumerate(zip(FIRST, SECOND)):
                logits, state = assistant.run(first, fake(f"state.{i}", (TARGET_HIDDEN,)))
                next_logits, next_state = assistant.run(second, state)
                rows.append({"tokens": [first, second],
                             "logits": [rounded(logits[::STRIDE]), rounded(next_logits[::STRIDE])],
                             "states": [rounded(state), rounded(next_state)]})
            cases.append({"clusters": clusters, "entries": entries, "config": config(clusters),
                          "shapes": shapes(clusters), "ordering": ordering() if clusters else None, "rows": rows})
    (out / "assistant.json").write_text(json.dumps({"stride": STRIDE, "cases": cases}) + "\n")


if __name__ == "__main__":
    torch.set_grad_enabled(False)
    main()
