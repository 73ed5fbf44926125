# SPDX-License-Identifier: Apache-2.0
"""Small tokenizers of every family Outrider supports, trained on synthetic text, and texts to test them on."""

import json
import random

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
          r"\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
GPT4O = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK_V3 = (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|"
               r" ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
SPACE_MARK = "\u2581"


def split(pattern, behavior="isolated"):
    return pre_tokenizers.Split(Regex(pattern), behavior)


def byte_level(use_regex, add_prefix_space=False):
    return pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space, use_regex=use_regex)


def byte_level_family(steps, normalizer=None, ignore_merges=False, use_regex=False):
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    steps = steps + [byte_level(use_regex)] if not any(isinstance(s, pre_tokenizers.ByteLevel) for s in steps) else steps
    tokenizer.pre_tokenizer = steps[0] if len(steps) == 1 else pre_tokenizers.Sequence(steps)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def sentence_piece_family(normalizer, pre_tokenizer, byte_fallback=True, fuse_unk=True, strip=True):
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=byte_fallback, fuse_unk=fuse_unk))
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    if pre_tokenizer is not None:
        tokenizer.pre_tokenizer = pre_tokenizer
    steps = [decoders.Replace(SPACE_MARK, " "), decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.decoder = decoders.Sequence(steps + ([decoders.Strip(" ", 1, 0)] if strip else []))
    return tokenizer


def unigram_family(pre_tokenizer, normalizer=None):
    tokenizer = Tokenizer(models.Unigram())
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    if pre_tokenizer is not None:
        tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.Sequence([decoders.Replace(SPACE_MARK, " "), decoders.ByteFallback(), decoders.Fuse()])
    return tokenizer


def untrained_families():
    prepend_replace = normalizers.Sequence([normalizers.Prepend(SPACE_MARK), normalizers.Replace(" ", SPACE_MARK)])
    metaspace = pre_tokenizers.Metaspace
    deepseek = [split(r"[\r\n]"), split(r"\s?\p{L}+"), split(r"\s?\p{P}+"),
                split("[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"), pre_tokenizers.Digits(individual_digits=True)]
    deepseek_llm = [split(r"[\r\n]"), split("\\s?[A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u0391-\u03a1]+"),
                    split("\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+"), split(r"\s+$"),
                    split("[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"), pre_tokenizers.Digits(individual_digits=True)]
    return {
        "gpt2": byte_level_family([], use_regex=True),
        "gpt2_prefix_space": byte_level_family([byte_level(True, add_prefix_space=True)]),
        "llama3": byte_level_family([split(LLAMA3)], ignore_merges=True),
        "qwen2": byte_level_family([split(QWEN2)], normalizer=normalizers.NFC()),
        "gpt4o": byte_level_family([split(GPT4O)]),
        "gpt4_removed_inverted": byte_level_family([pre_tokenizers.Split(Regex(LLAMA3), "removed", invert=True)]),
        "deepseek_coder": byte_level_family(deepseek),
        "deepseek_llm": byte_level_family(deepseek_llm),
        "deepseek_v3": byte_level_family([split(r"\p{N}{1,3}"), split("[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"),
                                          split(DEEPSEEK_V3)]),
        "starcoder": byte_level_family([pre_tokenizers.Digits(individual_digits=True)], use_regex=True),
        "falcon": byte_level_family([pre_tokenizers.Punctuation("contiguous"), byte_level(True),
                                     pre_tokenizers.Digits(individual_digits=False), split("[0-9][0-9][0-9]")]),
        "merged_with_previous": byte_level_family([split(r"\s", "merged_with_previous")]),
        "merged_with_next": byte_level_family([split(r"[\s\p{P}]", "merged_with_next"), split(r"\d", "contiguous")]),
        "llama2_prepend": sentence_piece_family(prepend_replace, None),
        "llama2_fuse_off": sentence_piece_family(prepend_replace, None, byte_fallback=False, fuse_unk=False),
        "metaspace_first": sentence_piece_family(None, metaspace(prepend_scheme="first", split=False)),
        "metaspace_always": sentence_piece_family(None, metaspace(prepend_scheme="always"), byte_fallback=False),
        "metaspace_never": sentence_piece_family(None, metaspace(prepend_scheme="never"), strip=False),
        "gemma": sentence_piece_family(normalizers.Replace(" ", SPACE_MARK), None, strip=False),
        "nfkc_lowercase": byte_level_family([], use_regex=True, normalizer=normalizers.Sequence(
            [normalizers.NFKC(), normalizers.Lowercase(), normalizers.Strip(), normalizers.Replace(Regex(" {2,}"), " ")])),
        "nfd_replace": byte_level_family([split(QWEN2)], normalizer=normalizers.Sequence(
            [normalizers.NFD(), normalizers.Replace("ll", "[L]"), normalizers.Prepend("~"), normalizers.Strip(left=False)])),
        "nfkd_sentence_piece": sentence_piece_family(normalizers.Sequence([normalizers.NFKD(), prepend_replace]), None),
        "unigram_metaspace": unigram_family(metaspace(prepend_scheme="always")),
        "unigram_first": unigram_family(metaspace(prepend_scheme="first", split=False)),
        "unigram_bytes": unigram_family(metaspace(prepend_scheme="always")),
        "unigram_normalized": unigram_family(None, normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(" ", SPACE_MARK)])),
    }


WORDS = ("the quick brown fox jumps over lazy dog and then it's they're we'll I'd you've I'm don't CamelCase HTTPServer "
         "snake_case def return import class self. None True x+=1 foo(bar) [1,2,3] {\"key\": 42} http://example.org "
         "na\u00efve caf\u00e9 r\u00e9sum\u00e9 \u00fcber stra\u00dfe \u043f\u0440\u0438\u0432\u0435\u0442 \u043c\u0438\u0440 "
         "\u4f60\u597d\u4e16\u754c \u65e5\u672c\u8a9e \u3072\u3089\u304c\u306a \u30ab\u30bf\u30ab\u30ca \ud55c\uad6d\uc5b4 "
         "\u0645\u0631\u062d\u0628\u0627 \u05e9\u05dc\u05d5\u05dd \u0928\u092e\u0938\u094d\u0924\u0947 "
         "\u1781\u17d2\u1798\u17c2\u179a \U0001f600 \U0001f469\u200d\U0001f467 3.14159 2024 1000000 99").split()


def training_lines(seed=1, count=3000):
    rng = random.Random(seed)
    for _ in range(count):
        separators = [" ", " ", " ", "  ", "\n", "\t", ", ", ". ", "\n\n", "    "]
        yield "".join(rng.choice(WORDS) + rng.choice(separators) for _ in range(rng.randint(3, 20)))


ADDED = [
    AddedToken("<|im_start|>", special=True, normalized=False),
    AddedToken("<|im_end|>", special=True, normalized=False),
    AddedToken("<|im|>", special=True, normalized=False, lstrip=True, rstrip=True),
    AddedToken("<mask>", special=True, normalized=False, lstrip=True),
    AddedToken("<tool>", special=False, normalized=False, rstrip=True),
    AddedToken("word", special=False, normalized=True, single_word=True),
    AddedToken("fox ju", special=False, normalized=True),
    AddedToken("caf\u00e9s", special=False, normalized=True),
    AddedToken("\u0151", special=False, normalized=False),
    AddedToken("    ", special=False, normalized=False),
    AddedToken("<s>x", special=False, normalized=True),
]


ROBERTA = ("gpt2_prefix_space",)  # families whose texts stand between <s> and </s>


def trainer_of(name, tokenizer, vocab_size):
    if isinstance(tokenizer.model, models.Unigram):
        return trainers.UnigramTrainer(vocab_size=vocab_size, special_tokens=["<unk>", "<s>", "</s>"], unk_token="<unk>",
                                       show_progress=False, max_piece_length=8)
    is_byte_level = isinstance(tokenizer.decoder, decoders.ByteLevel)
    special = ["<unk>", "<s>", "</s>"]
    if tokenizer.model.byte_fallback:
        special = special + [f"<0x{byte:02X}>" for byte in range(256)]
    alphabet = pre_tokenizers.ByteLevel.alphabet() if is_byte_level else []
    return trainers.BpeTrainer(vocab_size=vocab_size, special_tokens=special, show_progress=False,
                               initial_alphabet=alphabet, limit_alphabet=400)


def add_byte_pieces(state):
    """Gives a unigram vocabulary the pieces <0x00> to <0xFF>, as SentencePiece does."""
    state["model"]["vocab"] += [[f"<0x{byte:02X}>", 0.0] for byte in range(256)]
    state["model"]["byte_fallback"] = True


def build_families(vocab_size=1200):
    """Returns trained tokenizers by name. Each adds BOS by a template, has added tokens of all kinds, and byte tokens."""
    families = {}
    for name, tokenizer in untrained_families().items():
        tokenizer.train_from_iterator(training_lines(), trainer_of(name, tokenizer, vocab_size))
        state = json.loads(tokenizer.to_str())
        # The trainer makes byte tokens special; in real files they are plain entries of the vocabulary.
        state["added_tokens"] = [t for t in state["added_tokens"] if not t["content"].startswith("<0x")]
        if name == "unigram_bytes":
            add_byte_pieces(state)
        tokenizer = Tokenizer.from_str(json.dumps(state))
        tokenizer.add_tokens(ADDED)
        bos = tokenizer.token_to_id("<s>")
        template = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", bos)])
        if name in ROBERTA:
            template = processors.RobertaProcessing(("</s>", tokenizer.token_to_id("</s>")), ("<s>", bos))
        tokenizer.post_processor = (processors.Sequence([processors.ByteLevel(trim_offsets=False), template])
                                    if isinstance(tokenizer.decoder, decoders.ByteLevel) else template)
        families[name] = tokenizer
    return families


EDGES = ["", " ", "  ", "\n", "\r\n", " \n \n  x", "\u180e", "a\u180eb", "\u0085", "\u2028", "'\u017f 'S 'LL 'Re",
         "\u212a", "e\u0301", "\u1e9b\u0323", "\uac00\u11a8", "\u0344", "\u2126", "\u00bd\u00b2\u2460\u0663", SPACE_MARK,
         SPACE_MARK * 3 + "x", "<0x41>", "<0xZZ>", "\ufeff", "\ufffd", "\U0010ffff", "\u200d", "\u0300\u0301a",
         "sword word words word_ word1 word\u0301 word", "  <|im|>   <|im|> ", "a <mask> b", "<tool>   x", "<s>x<s> </s>",
         "cafe\u0301s", "fox ju fox  ju", "<|im_start|>user\nhi<|im_end|>", "<|im_sta", "<unk>", "\u0151\u00f6", "1234567890",
         "x" * 300, " " * 300, "ab" * 200 + " " * 50 + "\n" * 50, "$", "a$\nb$\n", "\t \t", "{n,m}+"]


def texts(count, seed):
    """Yields edge cases, then random mixtures, all valid Unicode without NUL."""
    yield from EDGES
    rng = random.Random(seed)
    fragments = WORDS + [t.content for t in ADDED] + EDGES[1:40]
    ranges = [(0x20, 0x7e), (0x20, 0x7e), (1, 0x2ff), (0x300, 0x36f), (0x370, 0x6ff), (0x900, 0x1fff), (0x2000, 0x2bff),
              (0x3000, 0x9fff), (0xac00, 0xd7a3), (0xf900, 0xffff), (0x10000, 0x1ffff), (0x20000, 0x3ffff),
              (0xe0000, 0xe01ff), (0x1, 0x10ffff)]

    def character():
        low, high = rng.choice(ranges)
        code = rng.randint(low, high)
        return chr(code) if not 0xd800 <= code <= 0xdfff else "\ud7a3"

    spaces = [" ", "  ", "\n", "\t", "\r\n", "\u00a0", "\u3000", "\u2003", "   ", "\u180e", "\u0085", ""]
    for _ in range(count - len(EDGES)):
        kind = rng.random()
        length = rng.randint(1, 12)
        if kind < 0.4:
            yield "".join(rng.choice(fragments) + rng.choice(spaces) for _ in range(length))
        elif kind < 0.7:
            yield "".join(character() for _ in range(length * 2))
        elif kind < 0.85:
            yield "".join(rng.choice(spaces + ["a", "1", ".", "'s", "\u0301"]) for _ in range(length * 2))
        else:
            yield "".join(rng.choice([rng.choice(fragments), character(), rng.choice(spaces)]) for _ in range(length))
