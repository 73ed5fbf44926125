# SPDX-License-Identifier: Apache-2.0
"""Fake weights and the small targets in plain PyTorch, for the goldens of all learned drafters.

The code prefers clarity to speed: whole sequences, dense masks, f32.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from safetensors import safe_open

ROOT = Path(__file__).resolve().parents[2] / "tests/data"


def output_folder():
    """The folder named on the command line, or tests/data/heads; it is created where it is missing."""
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "heads"
    out.mkdir(parents=True, exist_ok=True)
    return out


def fake(name, shape):
    """Returns the numbers of fake_tensor() in src/draft_heads/fake_head.h, a function of only name and index.

    Matrices lie in [-0.2, 0.2), norms about 1, biases in [-0.2, 0.2).
    """
    seed = 0xCBF29CE484222325
    for byte in name.encode():
        seed = (seed ^ byte) * 0x100000001B3 % 2**64
    count = int(np.prod(shape))
    x = (np.uint64(seed) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)).astype(np.uint64)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x = x ^ (x >> np.uint64(31))
    unit = (x >> np.uint64(40)).astype(np.float32) / np.float32(2**24)  # [0, 1)
    values = (unit - np.float32(0.5)) * np.float32(0.4)
    if "norm" in name:
        values = values + np.float32(1)
    return torch.from_numpy(values.reshape(shape))


def rms_norm(x, weight, epsilon=1e-5):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + epsilon) * weight


def rope(x, positions, theta):
    """x [rows, heads, dim]; pairs are (i, i + dim / 2)."""
    half = x.shape[-1] // 2
    frequency = theta ** (-torch.arange(half, dtype=torch.float32) / half)
    angle = positions.float()[:, None] * frequency
    cos, sin = angle.cos()[:, None], angle.sin()[:, None]
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def attend(q, k, v, mask):
    """q [rows, heads, dim], k and v [entries, kv_heads, dim], mask [rows, entries]: true where a row sees an entry."""
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    scores = torch.einsum("rhd,ehd->hre", q, k) / q.shape[-1] ** 0.5
    scores = scores.masked_fill(~mask, float("-inf"))
    return torch.einsum("hre,ehd->rhd", scores.softmax(-1), v).flatten(1)


def layer_shapes(hidden, heads, kv_heads, head_dim, mlp, qk_norm=False):
    """Shapes of a decoder layer's weights by name."""
    shapes = {
        "input_layernorm.weight": (hidden,),
        "post_attention_layernorm.weight": (hidden,),
        "self_attn.q_proj.weight": (heads * head_dim, hidden),
        "self_attn.k_proj.weight": (kv_heads * head_dim, hidden),
        "self_attn.v_proj.weight": (kv_heads * head_dim, hidden),
        "self_attn.o_proj.weight": (hidden, heads * head_dim),
        "mlp.gate_proj.weight": (mlp, hidden),
        "mlp.up_proj.weight": (mlp, hidden),
        "mlp.down_proj.weight": (hidden, mlp),
    }
    if qk_norm:
        shapes |= {"self_attn.q_norm.weight": (head_dim,), "self_attn.k_norm.weight": (head_dim,)}
    return shapes


class Layer:
    """The parts of a decoder layer. `get(name)` returns a tensor, or None for biases and norms the layer lacks."""

    def __init__(self, get, heads, kv_heads, head_dim, theta):
        self.heads, self.kv_heads, self.head_dim, self.theta = heads, kv_heads, head_dim, theta
        self.get = get

    def linear(self, name, x):
        return F.linear(x, self.get(name + ".weight"), self.get(name + ".bias"))

    def norm(self, name, x):
        weight = self.get(name + ".weight")
        return x if weight is None else rms_norm(x, weight)

    def query(self, x, positions):
        q = self.linear("self_attn.q_proj", x).unflatten(-1, (self.heads, self.head_dim))
        return rope(self.norm("self_attn.q_norm", q), positions, self.theta)

    def key_value(self, x, positions):
        k = self.linear("self_attn.k_proj", x).unflatten(-1, (self.kv_heads, self.head_dim))
        v = self.linear("self_attn.v_proj", x).unflatten(-1, (self.kv_heads, self.head_dim))
        return rope(self.norm("self_attn.k_norm", k), positions, self.theta), v

    def finish(self, x, attended):
        x = x + self.linear("self_attn.o_proj", attended)
        y = self.norm("post_attention_layernorm", x)
        gated = F.silu(self.linear("mlp.gate_proj", y)) * self.linear("mlp.up_proj", y)
        return x + self.linear("mlp.down_proj", gated)

    def run(self, x, positions, mask, before=None):
        """Runs the layer; `before` holds keys and values of earlier entries. Returns states, and keys and values of all."""
        y = self.norm("input_layernorm", x)
        k, v = self.key_value(y, positions)
        if before is not None:
            k, v = torch.cat([before[0], k]), torch.cat([before[1], v])
        return self.finish(x, attend(self.query(y, positions), k, v, mask)), (k, v)


def causal(rows):
    return torch.ones(rows, rows).tril().bool()


def tree_mask(parents, committed):
    """Returns [nodes, committed + nodes]: a node sees the committed entries, its ancestors and itself."""
    mask = torch.zeros(len(parents), committed + len(parents), dtype=torch.bool)
    mask[:, :committed] = True
    for node, parent in enumerate(parents):
        if parent >= 0:
            mask[node, committed:] = mask[parent, committed:]
        mask[node, committed + node] = True
    return mask


def depths(parents):
    found = []
    for parent in parents:
        found.append(0 if parent < 0 else found[parent] + 1)
    return torch.tensor(found)


class Target:
    """A model of tests/data/models with `layers` layers, which repeat the layers of the file."""

    def __init__(self, name, layers):
        config = json.loads((ROOT / "models" / name / "config.json").read_text())
        with safe_open(ROOT / "models" / name / "model.safetensors", "pt") as file:
            self.tensors = {key: file.get_tensor(key).float() for key in file.keys()}
        self.hidden = config["hidden_size"]
        self.heads = config["num_attention_heads"]
        self.kv_heads = config["num_key_value_heads"]
        self.head_dim = config.get("head_dim", self.hidden // self.heads)
        self.theta = config["rope_parameters"]["rope_theta"]
        self.vocab = config["vocab_size"]
        in_file = config["num_hidden_layers"]
        self.layers = [self.layer(i % in_file) for i in range(layers)]

    def layer(self, index):
        prefix = f"model.layers.{index}."
        return Layer(lambda name: self.tensors.get(prefix + name), self.heads, self.kv_heads, self.head_dim, self.theta)

    def embed(self, tokens):
        return self.tensors["model.embed_tokens.weight"][torch.tensor(tokens)]

    def norm(self, x):
        return rms_norm(x, self.tensors["model.norm.weight"])

    def head(self, x):
        return x @ self.tensors.get("lm_head.weight", self.tensors["model.embed_tokens.weight"]).T

    def run(self, tokens):
        """Returns the residual streams that enter every layer and leave the last, and keys and values by layer."""
        x = self.embed(tokens)
        positions = torch.arange(len(tokens))
        streams, cache = [x], []
        for layer in self.layers:
            x, entries = layer.run(x, positions, causal(len(tokens)))
            streams.append(x)
            cache.append(entries)
        return streams, cache


def rounded(tensor, places=6):
    return [round(float(value), places) for value in tensor.flatten()]
