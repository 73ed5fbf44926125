#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the checkpoints of torch.save() that the tests of src/formats/torch and src/formats/hf read.

Usage: make_torch_goldens.py [tests/data]   Needs: torch, safetensors.

  torch/types.bin   every type, views of one storage, parameters, empty and scalar tensors, values that are none
  torch/types.json  name -> [type, shape, bytes in hexadecimal] of each tensor of types.bin
  torch/qwen2.bin   the tensors of formats/qwen2/model.safetensors
  torch/legacy.bin  the format before PyTorch 1.6
  torch/strided.bin a transposed tensor
"""

import collections
import json
import pathlib
import sys

import torch
from safetensors.torch import load_file

NAMES = {
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.float64: "F64",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}


def all_types():
    tensors = collections.OrderedDict()
    for dtype, name in NAMES.items():
        tensors[f"of {name}"] = (torch.arange(6) % 2 + 1).reshape(2, 3).to(dtype)
    tensors["whole"] = torch.linspace(-1, 1, 24).reshape(4, 3, 2)
    tensors["part"] = tensors["whole"][1:3]
    tensors["tied"] = tensors["whole"]
    tensors["parameter"] = torch.nn.Parameter(torch.tensor([[1.5], [-2.0]]))
    tensors["scalar"] = torch.tensor(7)
    tensors["empty"] = torch.zeros(0, 3)
    tensors["one column of many"] = torch.arange(4.0).reshape(4, 1)[:, :1]
    return tensors


def main():
    out = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "tests/data")
    folder = out / "torch"
    folder.mkdir(exist_ok=True)
    tensors = all_types()
    expected = {
        name: [NAMES[x.dtype], list(x.shape), x.detach().contiguous().flatten().view(torch.uint8).numpy().tobytes().hex()]
        for name, x in tensors.items()
    }
    (folder / "types.json").write_text(json.dumps(expected, indent=1) + "\n")
    tensors["epoch"] = 3
    tensors["rate"] = 0.5
    tensors["great"] = -(2**40)
    tensors["notes"] = ["text", None, (True, {"nested": 1})]
    tensors._metadata = collections.OrderedDict({"": {"version": 1}})
    torch.save(tensors, folder / "types.bin")
    torch.save(load_file(out / "formats/qwen2/model.safetensors"), folder / "qwen2.bin")
    torch.save({"a": torch.ones(2)}, folder / "legacy.bin", _use_new_zipfile_serialization=False)
    torch.save({"a": torch.ones(2, 3).t()}, folder / "strided.bin")


if __name__ == "__main__":
    main()
