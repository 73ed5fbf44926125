#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns the training records into questions to a chat model, for `outrider-train --regenerate`.

    python tools/make_chat_prompts.py --data TEXT --out build/chat-prompts [--german FORTUNES]

Writes OUT/<kind>.jsonl with lines {"prompt": ..., "response": ""}: the target writes the responses. TEXT is the folder
that tools/prepare_training_data.py reads. Records marked "heldout" are left out. FORTUNES is a file of German
quotations separated by lines of "%", such as the one of Debian's package fortunes-de; they become questions for a
translation. Needs the package zstandard.
"""

import argparse
import json
import pathlib
import random
import re

from training_corpus import train_records

SEED = 22
PASSAGE_WORDS = (80, 260)
ARTICLE_WORDS = (280, 520)
SOURCE_WORDS = (60, 110)
SENTENCE_WORDS = (5, 45)
RETRIEVALS = 2000

SUMMARY = ["Summarize: {}", "Summarize the following text in a few sentences.\n\n{}", "{}\n\nWhat is this text about?",
           "Give me the key points of this passage as a list:\n{}", "tl;dr of this, please:\n\n{}"]
ARTICLE = ["Summarize: {}", "Summarize: {}", "Summarize this article in three sentences:\n\n{}"]
TRANSLATION = ["Translate German to English: {}", "Translate German to English: {}", "Translate to English: {}",
               "What does this mean in English? {}"]
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


def german_sentences(fortunes: str):
    """Yields the quotations, each on one line and without its author."""
    for fortune in fortunes.split("\n%\n"):
        text = " ".join(fortune.split("\n\t\t--")[0].split())
        if SENTENCE_WORDS[0] <= len(text.split(" ")) <= SENTENCE_WORDS[1]:
            yield text


def retrieval(asked: list[str], passages: list[str], count: int, rng: random.Random):
    """Yields questions about a text, behind passages about something else, as a search would find them."""
    for question in rng.sample(asked, min(count, len(asked))):
        yield "\n".join([*rng.sample(passages, rng.randint(2, 4)), question])


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
    parser.add_argument("--german", type=pathlib.Path, help="file of German quotations, separated by lines of %%")
    args = parser.parse_args()
    rng, long_rng = random.Random(SEED), random.Random(SEED)
    by_kind: dict[str, set[str]] = {}
    articles, passages = set(), []
    for domain in ("prose", "stories", "code", "instruct", "math"):
        for source, record in train_records(args.data, domain):
            for kind, question in questions(domain, source, record, rng):
                by_kind.setdefault(kind, set()).add(question.strip())
            if domain == "prose" or source == "openstax_algebra_text":
                for _ in range(min(6, len(record["text"]) // 4000)):
                    text = passage(record["text"], long_rng, ARTICLE_WORDS)
                    articles.add(long_rng.choice(ARTICLE).format(text).strip())
            if source.startswith(("wikitext", "openstax_algebra_text")):
                passages += [passage(record["text"], long_rng, SOURCE_WORDS) for _ in range(8)]
    by_kind["article"] = articles
    by_kind["retrieval"] = set(retrieval(sorted(by_kind["reading"]), passages, RETRIEVALS, long_rng))
    if args.german:
        by_kind["translation"] = {long_rng.choice(TRANSLATION).format(text)
                                  for text in german_sentences(args.german.read_text(encoding="utf-8"))}
    args.out.mkdir(parents=True, exist_ok=True)
    for kind, texts in sorted(by_kind.items()):
        lines = (json.dumps({"prompt": text, "response": ""}, ensure_ascii=False) + "\n" for text in sorted(texts))
        (args.out / f"{kind}.jsonl").write_text("".join(lines), encoding="utf-8")
        print(f"{kind}: {len(texts)} questions")


if __name__ == "__main__":
    main()
