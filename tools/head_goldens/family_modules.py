#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goldens of MTP modules with a layer of the target's family.

    python tools/head_goldens/family_modules.py [out_dir]        default: tests/data/heads

Needs torch, numpy, safetensors and transformers 5. Its decoder layers of the targets in tests/data/models get the fake
weights of common.py. Names are the same as in published checkpoints, with a matrix for each expert. Each path of a tree
is computed by itself and from the beginning. """

import json
import re

import numpy as np
import torch
import torch.nn.functional as F
from common import ROOT, causal, fake, output_folder, rms_norm, rounded
from recurrent import LENGTH, NODES, TEXT, Checkpoint, chained, recurrent
from safetensors import safe_open
from transformers import AutoConfig, AutoModelForCausalLM

STRIDE = 6  # every sixth logit is kept


class Family:
    """A target in tests/data/models, and transformers' layer for a module of it."""

    def __init__(self, name):
        folder = ROOT / "models" / name
        with safe_open(folder / "model.safetensors", "pt") as file:
            self.embedding, self.head = (file.get_tensor(key).float() for key in
                                         ("model.embed_tokens.weight", "lm_head.weight"))
        self.config = AutoConfig.from_pretrained(folder)
        model = AutoModelForCausalLM.from_config(self.config, attn_implementation="eager").float().eval()
        types = getattr(self.config, "layer_types", None) or ["full_attention"] * self.config.num_hidden_layers
        attends = [i for i, kind in enumerate(types) if kind == "full_attention"]
        self.layer, self.rotary = model.model.layers[attends[-1]], model.model.rotary_emb

    def fill(self, get, prefix):
        """Gives the layer fake weights, which `get` records by their published names."""
        tensors = {}
        for name, old in self.layer.state_dict().items():
            if not name.startswith("mlp.experts."):
                tensors[name] = get(prefix + name, *old.shape)
                continue
            parts = ["gate_proj", "up_proj"] if "gate_up" in name else ["down_proj"]
            rows = old.shape[1] // len(parts)
            tensors[name] = torch.stack([
                torch.cat([get(f"{prefix}mlp.experts.{expert}.{part}.weight", rows, old.shape[2]) for part in parts])
                for expert in range(old.shape[0])
            ])
        self.layer.load_state_dict(tensors)

    def run(self, x):
        x = x[None]
        positions = torch.arange(x.shape[1])[None]
        mask = torch.where(causal(x.shape[1]), 0.0, float("-inf"))[None, None]
        out = self.layer(x, position_embeddings=self.rotary(x, positions), attention_mask=mask, position_ids=positions)
        return (out[0] if isinstance(out, tuple) else out)[0]


class Module:
    """`names`: embedding norm, hidden norm, linear map, output norm; `shift` is added to stored norms."""

    def __init__(self, family, get, names, prefix, *, shift=0.0, post_norm=False):
        hidden = family.config.hidden_size
        self.family, self.post_norm, self.epsilon = family, post_norm, family.config.rms_norm_eps
        self.embedding_norm, self.hidden_norm = (get(name, hidden) + shift for name in names[:2])
        self.fc, self.norm = get(names[2], hidden, 2 * hidden), get(names[3], hidden) + shift
        family.fill(get, prefix)

    def first(self, features):
        return features

    def states(self, states, tokens):
        embedded = self.family.embedding[torch.tensor(tokens)]
        parts = (rms_norm(embedded, self.embedding_norm, self.epsilon),
                 rms_norm(states, self.hidden_norm, self.epsilon))
        return self.family.run(F.linear(torch.cat(parts, -1), self.fc))

    def logits(self, state):
        return rms_norm(state, self.norm, self.epsilon) @ self.family.head.T

    def next(self, state):
        return rms_norm(state, self.norm, self.epsilon) if self.post_norm else state


def case(name, get, family, config, logits_after, depth=len(NODES)):
    """`depth`: levels of nodes that are kept."""
    features = fake("features", (LENGTH - 1, family.config.hidden_size)) * np.float32(5)
    paths = [[]]
    for parent, token in NODES:
        paths.append(paths[parent + 1] + [token])
    paths = [path for path in paths if len(path) <= depth]
    nodes = NODES[: len(paths) - 1]  # they are in level order
    return {
        "name": name,
        "config": config,
        "shapes": get.shapes,
        "ids": None,
        "text": TEXT,
        "parents": [parent for parent, _ in nodes],
        "tokens": [token for _, token in nodes],
        "logits": [rounded(logits_after(features, TEXT, path)[::STRIDE]) for path in paths],
    }


def qwen_case(name):
    family, get = Family(name), Checkpoint()
    names = ["mtp.pre_fc_norm_embedding.weight", "mtp.pre_fc_norm_hidden.weight", "mtp.fc.weight", "mtp.norm.weight"]
    module = Module(family, get, names, "mtp.layers.0.", shift=1.0, post_norm=True)
    return case(name, get, family, {"text_config": {"mtp_num_hidden_layers": 1, "attn_output_gate": True}}, recurrent(module))


def deepseek_module(family, get, index):
    prefix = f"model.layers.{family.config.num_hidden_layers + index}."
    names = [prefix + part + ".weight" for part in ("enorm", "hnorm", "eh_proj", "shared_head.norm")]
    return Module(family, get, names, prefix)


def deepseek_case(name):
    family, get = Family(name), Checkpoint()
    module = deepseek_module(family, get, 0)
    return case(name, get, family, {"num_nextn_predict_layers": 1}, recurrent(module))


def deepseek_chain(name, count):
    """Several modules, each with weights of its own; module k drafts level k."""
    families, get = [Family(name) for _ in range(count)], Checkpoint()
    modules = [deepseek_module(family, get, index) for index, family in enumerate(families)]
    made = case(name + "_chained", get, families[0], {"num_nextn_predict_layers": count}, chained(modules), count - 1)
    return {**made, "target": name}


def main():
    cases = [qwen_case(name) for name in ("qwen3_5", "qwen3_5_moe", "qwen3_next")]
    cases += [deepseek_case(name) for name in ("deepseek_v3", "glm4_moe_lite", "glm4_moe")]
    cases += [deepseek_chain("deepseek_v3", 3), deepseek_chain("glm4_moe", 2)]
    text = json.dumps({"stride": STRIDE, "cases": cases})
    assert not re.search("NaN|Infinity", text)
    (output_folder() / "family_modules.json").write_text(text + "\n")


if __name__ == "__main__":
    torch.set_grad_enabled(False)
    main()
