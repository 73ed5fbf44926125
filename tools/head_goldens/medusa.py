#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goldens of Medusa's heads (Cai et al., arXiv 2401.10774, 2.1).

    python tools/head_goldens/medusa.py [out_dir]        default: tests/data/heads

Needs torch, numpy and safetensors (made with torch 2.x). Weights and the states that the heads read are functions of
their names (common.fake), so the file holds only results.
"""

import json

import torch
from common import fake, output_folder, rounded
from torch import nn

HIDDEN, VOCAB, HEADS, ROWS = 64, 288, 3, 4


class ResBlock(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.linear = nn.Linear(hidden, hidden)
        self.act = nn.SiLU()

    def forward(self, x):
        return x + self.act(self.linear(x))


def medusa(blocks):
    """A list of heads; the state dict has the published names: 0.0.linear.weight, ..., 0.<blocks>.weight."""
    return nn.ModuleList(
        nn.Sequential(*(ResBlock(HIDDEN) for _ in range(blocks)), nn.Linear(HIDDEN, VOCAB, bias=False))
        for _ in range(HEADS)
    )


def main():
    out = output_folder()
    states = fake("states", (ROWS, HIDDEN))
    cases = []
    for blocks in (1, 2):
        heads = medusa(blocks)
        heads.load_state_dict({name: fake(name, tuple(x.shape)) for name, x in heads.state_dict().items()})
        logits = torch.stack([head(states) for head in heads])  # [heads, rows, vocab]
        cases.append({"blocks": blocks, "names": sorted(heads.state_dict()), "logits": rounded(logits[:, :, ::9])})
    golden = {"hidden": HIDDEN, "vocab": VOCAB, "heads": HEADS, "rows": ROWS, "cases": cases}
    (out / "medusa.json").write_text(json.dumps(golden) + "\n")


if __name__ == "__main__":
    torch.set_grad_enabled(False)
    main()
