#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stores the matrices of a drafter in 8 bits, with one scale for every row, in the layout of compressed-tensors
(int-quantized): half of the bytes of bf16.

    python tools/quantize_head.py HEAD OUT

Reads HEAD/config.json and model.safetensors (F32, BF16 or F16). Tensors that are no matrices, and matrices of
less than --least numbers, stay as they are. Needs the package numpy.
"""

import argparse
import json
import pathlib
import struct

import numpy as np

TYPES = {"F32": np.float32, "F16": np.float16, "I64": np.int64, "I32": np.int32, "BOOL": np.bool_, "I8": np.int8}


def read(path: pathlib.Path) -> tuple[dict, dict]:
    """Returns {name: (dtype, array)} and the metadata; BF16 becomes uint16 bits."""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        first, last = (8 + size + offset for offset in entry["data_offsets"])
        kind = np.uint16 if entry["dtype"] == "BF16" else TYPES[entry["dtype"]]
        tensors[name] = entry["dtype"], np.frombuffer(data[first:last], kind).reshape(entry["shape"])
    return tensors, header.get("__metadata__", {})


def write(path: pathlib.Path, tensors: dict, metadata: dict) -> None:
    header, offset = {"__metadata__": metadata} if metadata else {}, 0
    for name, (dtype, array) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for _, array in tensors.values():
            out.write(np.ascontiguousarray(array).tobytes())


def as_f32(dtype: str, array: np.ndarray) -> np.ndarray:
    if dtype == "BF16":
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float32)


def quantized(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Codes, int8 [rows, columns], and scales, F32 [rows, 1], of the nearest representable numbers."""
    scales = np.abs(values).max(axis=1, keepdims=True) / 127
    codes = np.rint(values / np.where(scales == 0, 1, scales))
    return codes.astype(np.int8), scales.astype(np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("head", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--least", type=int, default=4096, help="numbers of the smallest matrix that is stored so [4096]")
    args = parser.parse_args()
    config = json.loads((args.head / "config.json").read_text())
    if "quantization_config" in config:
        parser.error(f"{args.head} is quantised already")
    tensors, metadata = read(args.head / "model.safetensors")
    stored = {}
    for name, (dtype, array) in tensors.items():
        if not name.endswith(".weight") or array.ndim != 2 or array.size < args.least:
            stored[name] = dtype, array
            continue
        codes, scales = quantized(as_f32(dtype, array))
        stored[name] = "I8", codes
        stored[name + "_scale"] = "F32", scales
    weights = {"num_bits": 8, "type": "int", "strategy": "channel", "symmetric": True, "dynamic": False}
    config["quantization_config"] = {
        "quant_method": "compressed-tensors", "format": "int-quantized", "quantization_status": "compressed",
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}}}
    args.out.mkdir(parents=True, exist_ok=True)
    write(args.out / "model.safetensors", stored, metadata)
    (args.out / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    before, after = ((folder / "model.safetensors").stat().st_size for folder in (args.head, args.out))
    print(f"{before / 1e6:.1f} MB -> {after / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
