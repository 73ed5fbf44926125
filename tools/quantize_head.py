#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stores the matrices of a drafter in 8 or 4 bits, in the layout of compressed-tensors.

    python tools/quantize_head.py HEAD OUT [--bits 4]

In 8 bits (int-quantized) every row has a scale, in 4 bits (pack-quantized) every 32 numbers: half or 0.28 of the bytes of
bf16. Reads HEAD/config.json and model.safetensors (F32, BF16 or F16). Tensors that are no matrices, matrices of less than
--least numbers, and for 4 bits matrices with rows that are not whole groups of 32, stay as they are. Needs the package
numpy. """

import argparse
import json
import pathlib
import struct

import numpy as np

GROUP = 32  # numbers with one scale in 4 bits
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


def in_8_bits(values: np.ndarray) -> dict:
    """The nearest numbers of codes, int8 [rows, columns], and scales, F32 [rows, 1]."""
    scales = np.abs(values).max(axis=1, keepdims=True) / 127
    codes = np.rint(values / np.where(scales == 0, 1, scales))
    return {"": ("I8", codes.astype(np.int8)), "_scale": ("F32", scales.astype(np.float32))}


def in_4_bits(values: np.ndarray) -> dict:
    """Codes -8 to 7, eight to an int32, and scales, F16 [rows, groups]. A group gets, of several scales, the one with
    the least squares of errors: the number of the largest magnitude has a code between -9.5 and -6.5."""
    groups = values.reshape(len(values), -1, GROUP)
    largest = np.take_along_axis(groups, np.abs(groups).argmax(axis=2)[:, :, None], axis=2)
    least = np.full(largest.shape, np.inf)
    codes, scales = np.zeros(groups.shape), np.zeros(largest.shape, np.float16)
    for code in np.linspace(-9.5, -6.5, 13):
        scale = (largest / code).astype(np.float16)
        wide = scale.astype(np.float32)
        tried = np.clip(np.rint(groups / np.where(wide == 0, 1, wide)), -8, 7)
        errors = np.square(tried * wide - groups).sum(axis=2, keepdims=True)
        is_better = errors < least
        least, scales = np.where(is_better, errors, least), np.where(is_better, scale, scales)
        codes = np.where(is_better, tried, codes)
    nibbles = (codes + 8).astype(np.uint32).reshape(len(values), -1, 8)
    packed = np.bitwise_or.reduce(nibbles << np.arange(0, 32, 4, dtype=np.uint32), axis=2)
    return {"_packed": ("I32", packed.view(np.int32)), "_scale": ("F16", scales.reshape(len(values), -1)),
            "_shape": ("I64", np.array(values.shape, np.int64))}


FORMATS = {
    8: (in_8_bits, "int-quantized", {"num_bits": 8, "type": "int", "strategy": "channel", "symmetric": True, "dynamic": False}),
    4: (in_4_bits, "pack-quantized", {"num_bits": 4, "type": "int", "strategy": "group", "group_size": GROUP, "symmetric": True,
                                      "dynamic": False}),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("head", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--bits", type=int, choices=FORMATS, default=8, help="bits of a number [8]")
    parser.add_argument("--least", type=int, default=4096, help="numbers of the smallest matrix that is stored so [4096]")
    args = parser.parse_args()
    config = json.loads((args.head / "config.json").read_text())
    if "quantization_config" in config:
        parser.error(f"{args.head} is quantised already")
    tensors, metadata = read(args.head / "model.safetensors")
    quantize, layout, weights = FORMATS[args.bits]
    stored = {}
    for name, (dtype, array) in tensors.items():
        if not name.endswith(".weight") or array.ndim != 2 or array.size < args.least or (
                args.bits == 4 and array.shape[1] % GROUP):
            stored[name] = dtype, array
            continue
        for part, tensor in quantize(as_f32(dtype, array)).items():
            stored[name + part] = tensor
    config["quantization_config"] = {
        "quant_method": "compressed-tensors", "format": layout, "quantization_status": "compressed",
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}}}
    args.out.mkdir(parents=True, exist_ok=True)
    write(args.out / "model.safetensors", stored, metadata)
    (args.out / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    before, after = ((folder / "model.safetensors").stat().st_size for folder in (args.head, args.out))
    print(f"{before / 1e6:.1f} MB -> {after / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
