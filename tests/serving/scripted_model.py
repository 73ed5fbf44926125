# SPDX-License-Identifier: Apache-2.0
"""A small model that says given texts. Only the position decides which: a prompt that ends where a script begins gets
this script. Every byte is a token, and marks are control tokens, so streams come byte by byte.
"""

import json
import pathlib
import struct

import numpy

WIDTH = 192
LOUD = 100  # how much stronger the position is than the last token


def printable_bytes():
    """The characters that stand for the 256 bytes in a vocabulary of byte-level BPE."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in shown]
    names = {byte: chr(byte) for byte in shown}
    names.update({byte: chr(256 + place) for place, byte in enumerate(hidden)})
    return [names[byte] for byte in range(256)]


class Vocabulary:
    def __init__(self, marks, end):
        self.bytes = printable_bytes()
        self.marks = {mark: 256 + place for place, mark in enumerate(dict.fromkeys([*marks, end]))}
        self.end = self.marks[end]
        self.size = 256 + len(self.marks)

    def encode(self, text):
        """`text`: a text, or a list of texts and bytes."""
        if isinstance(text, list):
            return [token for part in text for token in (part if isinstance(part, bytes) else self.encode(part))]
        tokens = []
        by_length = sorted(self.marks, key=len, reverse=True)
        while text:
            mark = next((one for one in by_length if text.startswith(one)), None)
            tokens += [self.marks[mark]] if mark else text[0].encode()
            text = text[len(mark) if mark else 1:]
        return tokens

    def write(self, folder, end, template):
        added = [{"id": token, "content": mark, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
                  "special": True} for mark, token in self.marks.items()]
        level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
        write_json(folder / "tokenizer.json", {
            "version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
            "pre_tokenizer": level, "post_processor": None, "decoder": level,
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                      "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                      "vocab": {name: byte for byte, name in enumerate(self.bytes)}, "merges": []}})
        write_json(folder / "tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": end,
                                                      "chat_template": template})


def write_json(path, value):
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")


def write_tensors(path, tensors):
    """A file of safetensors: the length of the header, the header, the numbers."""
    header, data = {}, b""
    for name, tensor in tensors.items():
        raw = numpy.ascontiguousarray(tensor, dtype=numpy.float32).tobytes()
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    head = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(head)) + head + data)


def write_model(folder, scripts, *, marks, end, template, positions):
    """Writes a model in the form of GPT-2. `scripts`: {length of the prompt: text}."""
    folder = pathlib.Path(folder)
    vocabulary = Vocabulary(marks, end)
    random = numpy.random.default_rng(51)
    tokens = random.standard_normal((vocabulary.size, WIDTH))
    tokens -= tokens.mean(1, keepdims=True)
    tokens *= 2 / numpy.linalg.norm(tokens, axis=1, keepdims=True)
    said = numpy.full(positions, vocabulary.end)
    for begin, text in scripts.items():
        spoken = [*vocabulary.encode(text), vocabulary.end]
        said[begin - 1:begin - 1 + len(spoken)] = spoken
    layer = {"ln_1.weight": numpy.ones(WIDTH), "ln_1.bias": numpy.zeros(WIDTH),
             "ln_2.weight": numpy.ones(WIDTH), "ln_2.bias": numpy.zeros(WIDTH),
             "attn.c_attn.weight": numpy.zeros((WIDTH, 3 * WIDTH)), "attn.c_attn.bias": numpy.zeros(3 * WIDTH),
             "attn.c_proj.weight": numpy.zeros((WIDTH, WIDTH)), "attn.c_proj.bias": numpy.zeros(WIDTH),
             "mlp.c_fc.weight": numpy.zeros((WIDTH, 2 * WIDTH)), "mlp.c_fc.bias": numpy.zeros(2 * WIDTH),
             "mlp.c_proj.weight": numpy.zeros((2 * WIDTH, WIDTH)), "mlp.c_proj.bias": numpy.zeros(WIDTH)}
    write_tensors(folder / "model.safetensors", {
        "transformer.wte.weight": tokens, "transformer.wpe.weight": LOUD * tokens[said],
        "transformer.ln_f.weight": numpy.ones(WIDTH), "transformer.ln_f.bias": numpy.zeros(WIDTH),
        **{"transformer.h.0." + name: tensor for name, tensor in layer.items()}})
    write_json(folder / "config.json", {
        "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": WIDTH, "n_head": 2, "n_layer": 1,
        "n_inner": 2 * WIDTH, "n_positions": positions, "n_ctx": positions, "vocab_size": vocabulary.size,
        "bos_token_id": vocabulary.end, "eos_token_id": vocabulary.end, "activation_function": "gelu_new",
        "layer_norm_epsilon": 1e-5, "torch_dtype": "float32", "tie_word_embeddings": True})
    vocabulary.write(folder, end, template)
