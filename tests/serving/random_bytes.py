#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models that say random bytes and marks in the template of each family, asked through every route that generates.
No answer has the status 500 or is no JSON, streams say what whole answers say, and texts keep every byte.

Usage: random_bytes.py OUTRIDER [ROUNDS]   (tools/check_clients.sh --bytes calls this)
"""

import json
import pathlib
import random
import sys
import urllib.error
import urllib.request

import client_forms
import family_forms
from openai_conformance import expect

MESSAGES = [{"role": "user", "content": "x"}]
TOOL = {"type": "function", "function": client_forms.FUNCTION}
PROMPT = "." * family_forms.FIRST
CHATS = {
    "/v1/chat/completions": {"messages": MESSAGES, "tools": [TOOL]},
    "/v1/responses": {"input": "x", "tools": [{"type": "function", **client_forms.FUNCTION}]},
    "/v1/messages": {"messages": MESSAGES, "max_tokens": 1000,
                     "tools": [{"name": "weather", "input_schema": client_forms.PARAMETERS}]},
    "/api/chat": {"model": client_forms.MODEL, "messages": MESSAGES, "tools": [TOOL]},
    "/api/generate": {"model": client_forms.MODEL, "prompt": "x"}}
TEXTS = {"/v1/completions": {"prompt": PROMPT}, "/completion": {"prompt": PROMPT},
         "/api/generate": {"model": client_forms.MODEL, "prompt": PROMPT, "raw": True}}


def ask(url, path, body):
    request = urllib.request.Request(url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def objects_in(answer):
    """The objects of an answer or of the events of a stream."""
    lines = [line.removeprefix("data: ") for line in answer.decode("utf-8").split("\n") if not line.startswith("event: ")]
    return [json.loads(line) for line in lines if line and line != "[DONE]"]


def texts_in(value, keys):
    """All texts in members with these names."""
    if isinstance(value, list):
        return "".join(texts_in(one, keys) for one in value)
    if not isinstance(value, dict):
        return ""
    return "".join(one if key in keys and isinstance(one, str) else texts_in(one, keys) for key, one in value.items())


def said(objects, path):
    """The text and the thinking."""
    if path == "/v1/responses":
        objects = [one.get("response", one)["output"] for one in objects if "output" in one.get("response", one)][-1:]
    return texts_in(objects, {"content", "text", "response"}), texts_in(objects, {"thinking", "reasoning_content"})


def check_model(url, text):
    for path, body in [*CHATS.items(), *TEXTS.items()]:
        answers = []
        for streams in (False, True):
            status, answer = ask(url, path, body | {"stream": streams})
            expect(status == 200, path, status, answer)
            answers.append(said(objects_in(answer), path))
        expect(answers[0] == answers[1] and any(answers[0]), path, answers)
    for path, body in TEXTS.items():
        whole, _ = said(objects_in(ask(url, path, body | {"stream": False})[1]), path)
        expect(whole == text, path, whole, text)


def random_script(draw, marks):
    """Texts and bytes, which may be no characters."""
    parts = [bytes(draw.choices(range(256), k=draw.randrange(1, 6))) if draw.random() < 0.5 else draw.choice(marks)
             if marks and draw.random() < 0.3 else draw.choice(["{", "}", '"', "\\", "\u00e9", "a b", "\n", "</think>", "null"])
             for _ in range(60)]
    return parts


def main():
    if len(sys.argv) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    program = str(pathlib.Path(sys.argv[1]).resolve())
    draw = random.Random(51)
    for round in range(int(sys.argv[2]) if len(sys.argv) == 3 else 1):
        for name, form in family_forms.FORMS.items():
            parts = random_script(draw, form.marks)
            raw = b"".join(part if isinstance(part, bytes) else b"" if part in form.marks else part.encode() for part in parts)
            with client_forms.scripted_server(program, form, {family_forms.FIRST: parts}) as url:
                check_model(url, raw.decode("utf-8", errors="replace"))
            print(f"ok      {name}, round {round + 1}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
