# SPDX-License-Identifier: Apache-2.0
"""Turns the records of the training data into text, for train_tokenizer.py and prepare_training_data.py."""

import io
import json
import pathlib
import random

import zstandard

END_OF_TEXT = "<|endoftext|>"
IM_START = "<|im_start|>"
IM_END = "<|im_end|>"
PAD = "<|pad|>"

# Maps a domain of the mixture to its folder of train/.
DOMAINS = {"prose": "prose", "stories": "stories", "code": "code", "instruct": "instruct", "math": "math"}

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)

# Separates a question from its answer where no chat template is used.
ANSWER_SEPARATOR = "\n\n"


def _records(data: pathlib.Path, domain: str, split: str):
    """Yields (source file name, record) of one split."""
    folder = data / "train" / DOMAINS[domain]
    paths = sorted(folder.glob("*.jsonl.zst"))
    if not paths:
        raise SystemExit(f"files *.jsonl.zst are expected in {folder}, found none; --data is the folder that holds train/")
    for path in paths:
        with path.open("rb") as compressed:
            reader = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(compressed)
            for line in io.TextIOWrapper(reader, encoding="utf-8"):
                record = json.loads(line)
                if record["split"] == split:
                    yield path.name.removesuffix(".jsonl.zst"), record


def train_records(data: pathlib.Path, domain: str):
    return _records(data, domain, "train")


def heldout_records(data: pathlib.Path, domain: str):
    return _records(data, domain, "heldout")


def record_texts(record: dict) -> list[str]:
    """Returns the pieces of text of a record, without layout."""
    if "text" in record:
        return [record["text"]]
    if "turns" in record:
        return list(record["turns"])
    return [record["prompt"], record["response"]]


def _chat(messages: list[str]) -> str:
    """Renders turns of user and assistant in the chat template's layout, user first."""
    roles = ("user", "assistant")
    return "".join(
        f"{IM_START}{roles[i % 2]}\n{message}{IM_END}\n" for i, message in enumerate(messages)
    )


def chat_prompt(messages: list[str]) -> str:
    """Renders the messages with the chat template, up to the start of the assistant's answer."""
    return _chat(messages) + f"{IM_START}assistant\n"


def documents(record: dict) -> list[str]:
    """Returns the training documents of a record.

    A question with its answer is laid out twice: bare, because `generate -p QUESTION` should be answered, and in the
    chat template, because `chat` should answer it too.
    """
    if "text" in record:
        return [record["text"]]
    if "turns" in record:
        return [_chat(record["turns"])]
    bare = record["prompt"].rstrip() + ANSWER_SEPARATOR + record["response"].strip()
    return [bare, _chat([record["prompt"].strip(), record["response"].strip()])]


# A prompt is the opening of a story, a passage from the middle of a book, whole lines of a source file, the first
# turns of a dialogue, or a whole question. People prompt a model in these ways, so a draft model learns from the
# target's answers to them.
STORY_WORDS = (15, 45)
PROSE_WORDS = (60, 160)
CODE_LINES = (8, 30)
CODE_CUTS = 12
PROSE_CUTS = 40
CHAT_TURNS = (1, 3, 5)


def _middle(pieces: list[str], length: tuple[int, int], rng: random.Random, separator: str) -> str:
    count = rng.randint(*length)
    start = rng.randint(0, max(0, len(pieces) - count))
    return separator.join(pieces[start : start + count])


def prompts(record: dict, domain: str, rng: random.Random) -> list[str]:
    """Returns prompts cut from a record, as text ready for the tokenizer."""
    if "prompt" in record:
        question = record["prompt"].strip()
        return [question, chat_prompt([question])]
    if "turns" in record:
        return [chat_prompt([turn.strip() for turn in record["turns"][: rng.choice(CHAT_TURNS)]])]
    text = record["text"]
    if domain == "stories":
        return [" ".join(text.split(" ")[: rng.randint(*STORY_WORDS)])]
    if domain == "code":
        lines = text.split("\n")
        return [_middle(lines, CODE_LINES, rng, "\n") + "\n" for _ in range(CODE_CUTS)]
    return [_middle(text.split(" "), PROSE_WORDS, rng, " ") for _ in range(PROSE_CUTS if domain == "prose" else 4)]
