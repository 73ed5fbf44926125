#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes random LoRA adapters of the models of tests/data/models, and the results of PEFT with them.

    python tools/make_adapter_goldens.py [out_dir [model...]]        default: tests/data/adapters, MODELS

Needs torch, transformers, peft, numpy and gguf. Each model has a PEFT folder that changes every linear layer outside of
experts, and golden.json with tokens and the logits of some of their rows (f32). One has adapter.gguf, too: the same
numbers as llama.cpp's converter orders them.
"""

import json
import shutil
import sys
from pathlib import Path

import gguf
import numpy as np
import peft
import torch
import transformers
from llama_gguf import interleaved

ROOT = Path(__file__).parent.parent
MODELS = ["llama", "falcon", "gemma3", "glm4", "gpt2", "lfm2", "mixtral", "mpt", "phi3", "qwen2", "qwen3_5"]
TOKENS = 30
ROWS = [0, 13, 29]
RANK = 4
GGUF_NAMES = {"q_proj": "attn_q", "k_proj": "attn_k", "v_proj": "attn_v", "o_proj": "attn_output",
              "gate_proj": "ffn_gate", "up_proj": "ffn_up", "down_proj": "ffn_down"}


def linear_layers(model):
    """The names of the layers' linear modules, without the output head."""
    kinds = (torch.nn.Linear, transformers.pytorch_utils.Conv1D)
    return [name for name, module in model.named_modules()
            if isinstance(module, kinds) and any(part in f".{name}" for part in (".layers.", ".h.", ".blocks."))]


def make_adapter(model, name):
    names = linear_layers(model)
    routers = {name for name in names if name.endswith((".gate", ".router", "shared_expert_gate", ".kv_b_proj"))}
    config = peft.LoraConfig(r=RANK, lora_alpha=6, target_modules=[n for n in names if n not in routers],
                             init_lora_weights=False, use_rslora=name == "qwen2",
                             # A GGUF file has one alpha.
                             alpha_pattern={} if name == "llama" else {"down_proj": 3, "q_proj": 5},
                             rank_pattern={} if name == "llama" else {"q_proj": 2})
    return peft.get_peft_model(model, config)


def write_gguf(folder, heads, kv_heads):
    tensors = peft.utils.load_peft_weights(str(folder))
    writer = gguf.GGUFWriter(folder / "adapter.gguf", "llama")
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", 6.0)
    for name, tensor in sorted(tensors.items()):
        parts = name.split(".")
        module, letter = parts[-3], parts[-2][-1]
        numbers = tensor.to(torch.float32).numpy()
        if letter == "B" and module in ("q_proj", "k_proj"):
            numbers = interleaved(numbers, heads if module == "q_proj" else kv_heads)
        layer = parts[parts.index("layers") + 1]
        writer.add_tensor(f"blk.{layer}.{GGUF_NAMES[module]}.weight.lora_{letter.lower()}", np.ascontiguousarray(numbers))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def make(name, out):
    torch.manual_seed(len(name) * 7 + ord(name[0]))
    source = ROOT / "tests/data/models" / name
    base = transformers.AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32, attn_implementation="eager").eval()
    tokens = torch.randint(0, base.config.get_text_config().vocab_size - 4, (1, TOKENS))
    with torch.no_grad():
        plain = base(tokens, use_cache=False).logits[0]
        model = make_adapter(base, name).eval()
        for key, parameter in model.named_parameters():
            if "lora_" in key:  # numbers that f16 holds, of a size that changes the output
                parameter.copy_((torch.randn_like(parameter) * 0.15).half().float())
        adapted = model(tokens, use_cache=False).logits[0]
    change = (adapted - plain).abs().max().item()
    assert change > 0.05, change
    folder = out / name
    shutil.rmtree(folder, ignore_errors=True)
    model.half().save_pretrained(folder)
    (folder / "README.md").unlink(missing_ok=True)
    config = json.loads((folder / "adapter_config.json").read_text())
    config["base_model_name_or_path"] = name
    config["target_modules"].sort()
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=1, sort_keys=True) + "\n")
    if (source.parent / f"{name}.gguf").exists() and name == "llama":
        write_gguf(folder, base.config.num_attention_heads, base.config.num_key_value_heads)
    golden = {"tokens": tokens[0].tolist(), "rows": ROWS,
              "logits": [[round(x, 6) for x in adapted[row].tolist()] for row in ROWS]}
    (folder / "golden.json").write_text(json.dumps(golden) + "\n")
    print(f"{name}: {sum(p.stat().st_size for p in folder.iterdir()) >> 10} KiB, changes logits by {change:.2f}")


def main():
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "tests/data/adapters"
    for name in sys.argv[2:] or MODELS:
        make(name, out)


main()
