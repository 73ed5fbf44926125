#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goldens of the Mixture of Attentions drafter (Zimmer et al., arXiv 2410.03804), Algorithm 1.

    python tools/head_goldens/moa.py [out_dir]        default: tests/data/heads

Needs torch, numpy and safetensors (made with torch 2.x). Weights are functions of their names (common.fake), so
the file holds only results: the states that cross-attention reads, and the logits after a drafted tree.
"""

import json

import torch

from common import Layer, Target, attend, depths, fake, layer_shapes, output_folder, rounded, tree_mask

LAYERS = 4
LSA_MLP, SA_MLP, CA_MLP = 40, 48, 56
LSA_KV_HEADS, KV_HEADS = 1, 2
TOKENS = [7, 130, 22, 201, 5, 77, 19, 240, 163, 48, 11]  # the last one is pending
# Node 0 is the pending token.
TREE_TOKENS = [11, 30, 31, 32, 33, 34, 35, 36]
TREE_PARENTS = [-1, 0, 0, 1, 1, 2, 3, 6]


class Moa:
    def __init__(self, target, biased, uses_lsa=True, uses_cross=True, lsa_heads=None):
        self.target = target
        self.uses_lsa, self.uses_cross = uses_lsa, uses_cross
        self.kv_hidden = 2 * target.kv_heads * target.head_dim
        dim = target.hidden // target.heads
        lsa_heads = lsa_heads or target.heads
        self.lsa = self.layer("layer_self_attention.", self.kv_hidden, lsa_heads, self.kv_hidden // lsa_heads,
                              LSA_KV_HEADS, LSA_MLP, biased)
        self.sa = self.layer("self_attention.", target.hidden, target.heads, dim, KV_HEADS, SA_MLP, biased)
        self.ca = self.layer("cross_attention.", target.hidden, target.heads, dim, KV_HEADS, CA_MLP, False)

    def layer(self, prefix, hidden, heads, head_dim, kv_heads, mlp, biased):
        shapes = layer_shapes(hidden, heads, kv_heads, head_dim, mlp)
        if biased:
            for part, rows in (("q", heads), ("k", kv_heads), ("v", kv_heads)):
                shapes[f"self_attn.{part}_proj.bias"] = (rows * head_dim,)
        tensors = {name: fake(prefix + name, shape) for name, shape in shapes.items()}
        return Layer(tensors.get, heads, kv_heads, head_dim, self.target.theta)

    def context(self, cache, last_hidden):
        """Returns the input of cross-attention for each committed token, [tokens, hidden]."""
        if not self.uses_lsa:
            return last_hidden
        # Per layer and token: the keys and values of head 0, of head 1, ...
        stacked = torch.stack([torch.cat(entries, -1).flatten(1) for entries in cache], 1)
        everything = torch.ones(LAYERS, LAYERS, dtype=torch.bool)
        places = torch.arange(LAYERS)
        mean = torch.stack([self.lsa.run(of_token, places, everything)[0].mean(0) for of_token in stacked])
        weight = fake("Ekv2E.weight", (self.target.hidden, self.kv_hidden))
        return mean @ weight.T + fake("Ekv2E.bias", (self.target.hidden,))

    def logits(self, tli):
        target = self.target
        committed = len(TOKENS) - 1
        streams, cache = target.run(TOKENS[:-1])
        context = self.context(cache, target.norm(streams[-1]))
        before = torch.arange(committed)
        positions = committed + depths(TREE_PARENTS)
        mask = tree_mask(TREE_PARENTS, committed)

        # Self-attention runs over the embeddings of all tokens.
        known = self.sa.key_value(self.sa.norm("input_layernorm", target.embed(TOKENS[:-1])), before)
        x, _ = self.sa.run(target.embed(TREE_TOKENS), positions, mask, known)
        # Cross-attention sees only the committed tokens; both streams share one norm.
        if self.uses_cross:
            k, v = self.ca.key_value(self.ca.norm("input_layernorm", context), before)
            q = self.ca.query(self.ca.norm("input_layernorm", x), positions)
            x = self.ca.finish(x, attend(q, k, v, mask[:, :committed]))
        # The frozen layers see the keys and values of the target and of the nodes.
        for index in range(LAYERS - tli, LAYERS):
            x, _ = target.layers[index].run(x, positions, mask, cache[index])
        return context, target.head(target.norm(x) if tli > 0 else x)


def main():
    out = output_folder()
    cases = []
    for name, biased, lsa, cross, lsa_heads, tlis in (
        ("llama", False, True, True, 4, (0, 1, 2)),
        ("qwen2", True, True, True, 4, (0, 2)),
        ("qwen3", False, True, True, 4, (1,)),  # keys and values are wider than the hidden size
        ("llama", False, True, True, 2, (0,)),  # another number of heads
        ("llama", False, False, True, 4, (0, 1)),
        ("llama", False, True, False, 4, (0,)),
    ):
        for tli in tlis:
            context, logits = Moa(Target(name, LAYERS), biased, lsa, cross, lsa_heads).logits(tli)
            cases.append({
                "target": name, "biased": biased, "uses_lsa": lsa, "uses_cross": cross, "lsa_heads": lsa_heads,
                "tli": tli,
                "context": rounded(context[:, ::4]),  # every fourth number of each token
                "logits": rounded(logits[:, ::9]),  # every ninth logit of each node
            })
    golden = {
        "layers": LAYERS, "lsa_mlp": LSA_MLP, "sa_mlp": SA_MLP, "ca_mlp": CA_MLP,
        "lsa_kv_heads": LSA_KV_HEADS, "kv_heads": KV_HEADS,
        "tokens": TOKENS, "tree_tokens": TREE_TOKENS, "tree_parents": TREE_PARENTS, "cases": cases,
    }
    (out / "moa.json").write_text(json.dumps(golden) + "\n")


if __name__ == "__main__":
    torch.set_grad_enabled(False)
    main()
