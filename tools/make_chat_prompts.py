#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns the training records into questions to a chat model, for `outrider-train --regenerate`.

    python tools/make_chat_prompts.py --data TEXT --out build/chat-prompts

Writes OUT/<kind>.jsonl with lines {"prompt": ..., "response": ""}: the target writes the responses. TEXT is the folder
that tools/prepare_training_data.py reads. Records marked "heldout" are left out. Needs the package zstandard.
"""

import argparse
import json
import pathlib
import random
import re

from training_corpus import train_records

SEED = 22
PASSAGE_WORDS = (80, 260)

SUMMARY = ["Summarize: {}", "Summarize the following text in a few sentences.\n\n{}", "{}\n\nWhat is this text about?",
           "Give me the key points of this passage as a list:\n{}", "tl;dr of this, please:\n\n{}"]
RETELLING = ["Write a short story that begins like this: {}", "Continue this story: {}",
             "{}\n\nWhat might happen next? Write the rest of the story.",
             "Rewrite this in the style of a fairy tale: {}", "Describe the main character of this story: {}"]
EXPLANATION = ["What does this Python function do?\n\n{}", "Explain this code step by step:\n```python\n{}\n```",
               "Write a docstring for this function:\n\n{}", "Is there a bug in this code?\n\n{}"]
TOPIC = ["What is {}?", "Tell me about {}.", "Write a paragraph about {}.", "Who or what is {}, and why does it matter?",
         "Give me five facts about {}.", "Write an email to a friend in which you recommend reading about {}.",
         "Explain {} to a ten-year-old.", "What are the pros and cons of {}?", "Write a poem about {}.",
         "When did people first hear of {}?", "Plan a lesson about {}.", "Act as an expert on {} and answer: where do I start?"]
FUNCTION = re.compile(r"^def \w+\(.*?(?=^\S)", re.M | re.S)
NAME = re.compile(r"(?<=[a-z,] )((?:[A-Z][a-z]+ ){1,2}[A-Z][a-z]+)")


def passage(text: str, rng: random.Random, words: tuple[int, int] = PASSAGE_WORDS) -> str:
    """Consecutive words from a sentence's beginning on."""
    sentences = re.split(r"(?<=[.!?]) +", text)
    count = rng.randint(*words)
    return " ".join(" ".join(sentences[rng.randrange(len(sentences)):]).split(" ")[:count])


def questions(domain: str, source: str, record: dict, rng: random.Random):
    """Yields (kind, question) pairs from one record."""
    if "turns" in record:
        yield "talk", record["turns"][0]
        yield "talk", rng.choice(record["turns"])
    elif "prompt" in record:
        kind = {"math": "math", "code": "code"}.get(domain, "reading" if source.startswith("t0") else "talk")
        if source != "tldr_commands" or rng.random() < 0.1:
            yield kind, record["prompt"]
    elif domain == "code":
        for function in FUNCTION.findall(record["text"])[:8]:
            if len(function) < 1500:
                yield "code", rng.choice(EXPLANATION).format(function.strip())
    elif domain == "stories":
        yield "writing", rng.choice(RETELLING).format(" ".join(record["text"].split(" ")[:rng.randint(12, 60)]))
        yield "summary", rng.choice(SUMMARY).format(passage(record["text"], rng))
    else:
        for _ in range(min(20, 1 + len(record["text"]) // 4000)):
            yield "summary", rng.choice(SUMMARY).format(passage(record["text"], rng))
        for name in sorted(set(NAME.findall(record["text"])))[:20]:
            yield "topics", rng.choice(TOPIC).format(name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=pathlib.Path, required=True, help="folder that holds train/")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder to write the .jsonl files to")
    args = parser.parse_args()
    rng = random.Random(SEED)
    by_kind: dict[str, set[str]] = {}
    for domain in ("prose", "stories", "code", "instruct", "math"):
        for source, record in train_records(args.data, domain):
            for kind, question in questions(domain, source, record, rng):
                by_kind.setdefault(kind, set()).add(question.strip())
    args.out.mkdir(parents=True, exist_ok=True)
    for kind, texts in sorted(by_kind.items()):
        lines = (json.dumps({"prompt": text, "response": ""}, ensure_ascii=False) + "\n" for text in sorted(texts))
        (args.out / f"{kind}.jsonl").write_text("".join(lines), encoding="utf-8")
        print(f"{kind}: {len(texts)} questions")


if __name__ == "__main__":
    main()
