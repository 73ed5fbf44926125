#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""MTP modules inside GGUF files, as llama.cpp's converter writes them.

    LLAMA_CPP_SOURCE=DIR python tools/head_goldens/gguf_modules.py [out_dir [NAME...]]     default: tests/data/heads

Needs what family_modules.py needs, and gguf. Converts each target of tests/data/models with the module of that name in
family_modules.json, in f32, and keeps the module's tensors of the file and the embeddings, as the converter's --mtp does.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import check_families  # first, because it says which gguf package is imported
import gguf
from common import ROOT, fake, output_folder
from safetensors.torch import load_file, save_file

NAMES = ("glm4_moe", "glm4_moe_lite", "qwen3_next")  # the converter leaves the module of DeepSeek V3 out


def add_module(folder, case):
    """Adds the module to the target's files."""
    file = folder / "model.safetensors"
    tensors = load_file(file)
    for name, shape in case["shapes"].items():
        tensors[name] = fake(name, tuple(shape)).contiguous()
    save_file(tensors, file, metadata={"format": "pt"})
    path = folder / "config.json"
    config = json.loads(path.read_text())
    config.update(case["config"].get("text_config", case["config"]))
    path.write_text(json.dumps(config))


def keep_module(whole, out):
    """Copies the keys and the module's tensors."""
    reader = gguf.GGUFReader(whole)
    architecture = reader.get_field("general.architecture").contents()
    module = reader.get_field(f"{architecture}.block_count").contents() - 1
    writer = gguf.GGUFWriter(out, architecture)
    for key, field in reader.fields.items():
        if key.startswith("GGUF.") or key == "general.architecture":
            continue
        kind = field.types[0]
        writer.add_key_value(key, field.contents(), kind, field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None)
    for tensor in reader.tensors:
        if tensor.name == "token_embd.weight":  # says how large the vocabulary is
            writer.add_tensor(tensor.name, tensor.data.astype("float16"))
        if tensor.name.startswith(f"blk.{module}."):
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    sys.argv, names = sys.argv[:2], sys.argv[2:] or NAMES
    out = output_folder()
    cases = {case["name"]: case for case in json.loads((ROOT / "heads/family_modules.json").read_text())["cases"]}
    for name in names:
        with tempfile.TemporaryDirectory() as place:
            folder = shutil.copytree(ROOT / "models" / name, Path(place) / name)
            add_module(folder, cases[name])
            check_families.convert(folder, Path(place) / "whole.gguf")
            keep_module(Path(place) / "whole.gguf", out / f"{name}_module.gguf")


if __name__ == "__main__":
    main()
