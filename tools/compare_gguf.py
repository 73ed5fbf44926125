#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads files of `outrider quantize` with the `gguf` package and compares them with the Hugging Face directories.

Every tensor is compared with the original's numbers: byte for byte with the package's own quantiser, and types with
scales that are searched for by their error, which must be the one reported. The tokenizer's pieces are compared as
well.

Usage: compare_gguf.py OUTRIDER DIRECTORY...   (needs the packages gguf and numpy)
"""

import json
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy as np
from gguf import GGMLQuantizationType, GGUFReader, get_tensor_name_map, MODEL_ARCH, quants
from llama_gguf import interleaved

TYPES = ["q8_0", "q6_k", "q5_0", "q5_1", "q4_k", "q4_0", "q4_1", "iq4_nl", "mxfp4"]
SEARCHED = {GGMLQuantizationType.Q4_K, GGMLQuantizationType.Q6_K, GGMLQuantizationType.IQ4_NL}
DECODERS = {
    "BF16": lambda raw: (np.frombuffer(raw, "<u2").astype("<u4") << 16).view("<f4"),
    "F16": lambda raw: np.frombuffer(raw, "<f2").astype("<f4"),
    "F32": lambda raw: np.frombuffer(raw, "<f4"),
}


def original_tensors(directory):
    data = (directory / "model.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    for name, info in json.loads(data[8 : 8 + length]).items():
        if name != "__metadata__":
            begin, end = info["data_offsets"]
            numbers = DECODERS[info["dtype"]](data[8 + length + begin : 8 + length + end])
            yield name, numbers.reshape(info["shape"])


def expected_tensors(directory, config):
    """Yields tensors by GGUF name, with the rows of q and k in the order of llama.cpp's converter."""
    llama = config["model_type"] in ("llama", "mistral")
    names = get_tensor_name_map(MODEL_ARCH.LLAMA if llama else MODEL_ARCH[config["model_type"].upper()],
                                config["num_hidden_layers"])
    heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}
    for name, numbers in original_tensors(directory):
        projection = name.split(".")[-2]
        if llama and projection in heads:
            numbers = interleaved(numbers, heads[projection])
        yield names.get_name(name, try_suffixes=(".weight", ".bias")), numbers


def check(condition, what):
    if not condition:
        sys.exit(f"compare_gguf: {what}")


def compare_tensor(tensor, numbers, reported):
    kind = tensor.tensor_type
    check(tuple(tensor.shape) == numbers.shape[::-1], f"{tensor.name} has shape {tensor.shape}")
    check(kind.name.lower() == reported["to"], f"{tensor.name} is {kind.name}, reported {reported['to']}")
    if kind not in SEARCHED and kind != GGMLQuantizationType.F32:
        check(quants.quantize(numbers, kind).tobytes() == tensor.data.tobytes(), f"{tensor.name} differs in bytes")
    error = quants.dequantize(tensor.data, kind).reshape(numbers.shape).astype("<f8") - numbers
    rmse = float(np.sqrt(np.mean(error**2)))
    check(abs(rmse - reported["rmse"]) <= 1e-6 * rmse, f"{tensor.name} has an error of {rmse}, reported {reported['rmse']}")


def compare(outrider, directory, kind, folder):
    path = pathlib.Path(folder) / "model.gguf"
    command = [outrider, "quantize", directory, path, "--type", kind, "--json", "--force"]
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    report = {tensor["name"]: tensor for tensor in json.loads(run.stdout)["tensors"]}
    reader = GGUFReader(path)
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    expected = dict(expected_tensors(directory, json.loads((directory / "config.json").read_text())))
    check(tensors.keys() - {"rope_freqs.weight"} == expected.keys(), f"tensors are {sorted(tensors)}")
    for name, numbers in expected.items():
        compare_tensor(tensors[name], numbers, report[name])
    pieces = json.loads((directory / "tokenizer.json").read_text())["model"]["vocab"]
    written = reader.fields["tokenizer.ggml.tokens"].contents()
    check(all(written[number] == piece for piece, number in pieces.items()), "pieces differ")
    return len(expected)


def main():
    outrider, *directories = sys.argv[1:]
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        for directory in map(pathlib.Path, directories):
            for kind in TYPES:
                count += compare(outrider, directory, kind, folder)
    print(f"compare_gguf: {count} tensors agree")


if __name__ == "__main__":
    main()
