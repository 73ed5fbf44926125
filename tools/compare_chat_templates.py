#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares prompts of published chat templates with transformers: ten conversations for each template of a folder.

    python tools/compare_chat_templates.py OUTRIDER FOLDER [--prefill | --calls]     (needs transformers, jinja2 and numpy)

FOLDER is, for example, models/templates of llama.cpp or ik_llama.cpp, or chat_templates of chujiezheng/chat_templates.
A prompt must equal the prompt of transformers. Where transformers refuses a conversation or hides a part of it, the
rules of docs/reference/api.md rewrite the conversation, and the prompts of what they make must be equal. The rules are
written here once more.

--prefill continues beginnings of answers (continue_final_message). The prompt must be equal wherever transformers gives
one. --calls lets a model say earlier calls as the template prints them: they must be read as calls.
"""

import argparse
import collections
import contextlib
import copy
import datetime
import html
import itertools
import json
import pathlib
import re
import string
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "serving"))
from scripted_model import write_json, write_model  # noqa: E402
from transformers.utils.chat_template_utils import render_jinja_template  # noqa: E402

BOS, EOS = "<s>", "</s>"
# Calls of families that Outrider does not run, in forms that it does not know.
OTHERS = ("Apertus", "Seed-OSS", "Cohere", "GigaChat", "functionary")
LONGEST_OPENING = 48  # of the texts that end a prompt and that earlier answers do not have
TOOLS = [{"type": "function", "function": {"name": name, "description": "tells the " + name, "parameters": {
    "type": "object", "properties": {"city": {"type": "string", "description": "the place"}}, "required": ["city"]}}}
    for name in ("weather", "news")]


def user(text):
    return {"role": "user", "content": text}


def system(text):
    return {"role": "system", "content": text}


def assistant(text, **more):
    return {"role": "assistant", "content": text, **more}


def call(id, name, city):
    return {"id": id, "type": "function", "function": {"name": name, "arguments": {"city": city}}}


def result(id, name, text):
    return {"role": "tool", "tool_call_id": id, "name": name, "content": text}


ID, OTHER_ID, LONG_ID = "abcdefghi", "jklmnopqr", "call_AbCdEfGhIjKlMnOpQrStUvWx"
CONVERSATIONS = {
    "a question": ([user("How are you?")], {}),
    "a system message": ([system("Be brief."), user("How\nare you? ")], {}),
    "turns": ([user("One?"), assistant("Two."), user("Three?")], {}),
    "earlier thinking": ([user("One?"), assistant("Two.", reasoning_content="Let me see."), user("Three?")], {}),
    "no thinking": ([system("Be brief."), user("One?")], {"enable_thinking": False}),
    "a call": ([system("Be brief."), user("One?"), assistant(None, tool_calls=[call(ID, "weather", "Bonn")]),
                result(ID, "weather", "rain")], {"tools": TOOLS}),
    "two calls": ([user("One?"), assistant("Both.", tool_calls=[call(ID, "weather", "Köln"), call(OTHER_ID, "news", "Bonn")]),
                   result(ID, "weather", "rain"), result(OTHER_ID, "news", "{\"a\": 1}"), assistant("Rain."), user("Two?")],
                  {"tools": TOOLS}),
    "an id of others": ([user("One?"), assistant(None, tool_calls=[call(LONG_ID, "news", "Bonn")], reasoning_content="Hm."),
                         result(LONG_ID, "news", "none")], {"tools": TOOLS}),
    "a late system message": ([system("Be brief."), user("One?"), assistant("Two."), system("Plan."), user("Three?")], {}),
    "neighbours": ([user("One?"), user("Two?"), assistant("Three."), assistant("Four."), user("Five?")], {}),
}
BEGINNINGS = ["<", "end", "i", "|", "<|", "im_end", "\n", " ", "  \n", "a ", "a\n", " a", "\ta\t", "eot_id", "model", "<|im_end|>",
              "[/]", "é ", "x\u00a0", "\u3000y\u3000", "abc <|im_start|>", "]", "user", "Sure, "]


# The rules of docs/reference/api.md. Each takes messages and returns messages.


def joined(*texts):
    return "\n\n".join(text for text in texts if text)


def calls_as_text(messages, lone_alone=False):
    names, written, after_result = {}, [], False
    for message in messages:
        calls = message.get("tool_calls", [])
        names |= {one["id"]: one["function"]["name"] for one in calls}
        if message["role"] == "tool" and not (lone_alone and message["tool_call_id"] in names):
            name = names.get(message["tool_call_id"], message.get("name", "the call"))
            text = f"Result of {name}: {message['content']}"
            if after_result:
                written[-1]["content"] += "\n" + text
            else:
                written.append(user(text))
            after_result = True
            continue
        if message["role"] == "user" and after_result:
            written[-1]["content"] = joined(written[-1]["content"], message["content"])
        elif calls and not lone_alone:
            lines = [json.dumps({"name": one["function"]["name"], "arguments": one["function"]["arguments"]}, ensure_ascii=False)
                     for one in calls]
            kept = {key: value for key, value in message.items() if key != "tool_calls"}
            written.append(kept | {"content": "\n".join([*filter(None, [message["content"]]), *lines])})
        else:
            written.append(message)
        after_result = False
    return written


def short_ids(messages):
    def short(id):
        if re.fullmatch("[0-9A-Za-z]{9}", id):
            return id
        digits = string.digits + string.ascii_lowercase + string.ascii_uppercase
        value = 14695981039346656037
        for byte in id.encode():
            value = (value ^ byte) * 1099511628211 % 2**64
        text = ""
        for _ in range(9):
            text += digits[value % 62]
            value //= 62
        return text

    for message in messages:
        for one in message.get("tool_calls", []):
            one["id"] = short(one["id"])
        if message["role"] == "tool":
            message["tool_call_id"] = short(message["tool_call_id"])
    return messages


def split_calls(messages):
    written, results = [], {one["tool_call_id"]: one for one in messages if one["role"] == "tool"}
    for message in messages:
        calls = message.get("tool_calls", [])
        if len(calls) > 1:
            for number, one in enumerate(calls):
                written += [(message if number == 0 else assistant(None)) | {"tool_calls": [one]}, results.pop(one["id"])]
        elif message["role"] != "tool" or message["tool_call_id"] in results:
            written.append(message)
    return written


def calls_after_text(messages):
    written = []
    for message in messages:
        calls = message.pop("tool_calls", None) if message["content"] else None
        written += [message, assistant(None, tool_calls=calls)] if calls else [message]
    return written


def call_text_as_thinking(messages):
    for message in messages:
        if message.get("tool_calls") and message.get("reasoning_content") and message["content"]:
            message["reasoning_content"] = joined(message["reasoning_content"], message["content"])
            message["content"] = ""
    return messages


def late_system_moved(messages):
    written, waiting = [], ""
    for message in messages:
        if message["role"] == "system" and written:
            waiting = joined(waiting, message["content"])
            continue
        if message["role"] == "user":
            message["content"], waiting = joined(waiting, message["content"]), ""
        written.append(message)
    if waiting:
        written[-1]["content"] = joined(written[-1]["content"], waiting)
    return written


def first_system_moved(messages):
    if messages[0]["role"] != "system":
        return messages
    return [user(joined(messages[0]["content"], messages[1]["content"])), *messages[2:]]


def neighbours_joined(messages):
    written = []
    for message in messages:
        if written and written[-1]["role"] == message["role"] != "tool":
            last = written[-1]
            last["content"] = joined(last["content"], message["content"])
            last |= {"tool_calls": last.get("tool_calls", []) + message["tool_calls"]} if "tool_calls" in message else {}
        else:
            written.append(message)
    return written


def with_instructions(messages, instructions):
    first = messages[0]["content"] if messages[0]["role"] == "system" else ""
    return [system(joined(first, instructions)), *messages[1 if first else 0:]]


RULES = {"calls as text": calls_as_text, "lone results": lambda messages: calls_as_text(messages, lone_alone=True),
         "ids": short_ids, "several calls": split_calls, "calls after text": calls_after_text,
         "text as thinking": call_text_as_thinking,
         "late system": late_system_moved, "system": first_system_moved, "neighbours": neighbours_joined}


def rewritings(messages, tools, instructions):
    """Yields (names of rules, messages, tools), fewer rules first."""
    if not tools:
        yield (), messages, None
        yield ("no tools as a list",), messages, []
    for count in range(len(RULES) + 2):
        for names in itertools.combinations(["tools", *RULES], count):
            if "tools" in names and not tools:
                continue
            now = copy.deepcopy(messages)
            if "tools" in names:
                now = with_instructions(now, instructions)
            for name in names:
                before = copy.deepcopy(now)
                now = RULES[name](now) if name in RULES else now
                if name in RULES and now == before:
                    break
            else:
                yield names, now, None if "tools" in names else tools


def forms_of(messages):
    """The ways in which the server gives messages to a template: contents, thinking and arguments differ."""
    for empty, parts, text in itertools.product((None, ""), (False, True), (False, True)):
        written = copy.deepcopy(messages)
        for message in written:
            thinking = message.pop("reasoning_content", None)
            if message.get("tool_calls"):
                message["content"] = message["content"] or empty
            for one in message.get("tool_calls", []) if text else []:
                one["function"]["arguments"] = json.dumps(one["function"]["arguments"], ensure_ascii=False)
            if thinking and parts:
                message["content"] = [{"type": "thinking", "thinking": thinking}, {"type": "text", "text": message["content"] or ""}]
            elif thinking:
                message |= {"reasoning_content": thinking, "thinking": thinking}
        yield written


def rendered(template, messages, tools, values, **more):
    try:
        return render_jinja_template([messages], tools=tools, chat_template=template, bos_token=BOS, eos_token=EOS, **values,
                                     **more)[0][0]
    except Exception:  # Jinja2 refuses with many types of exceptions
        return None


def shows_all(prompt, messages, tools):
    texts = [message["content"] for message in messages if message["content"]]
    texts += [one["function"]["arguments"]["city"] for message in messages for one in message.get("tool_calls", [])]
    return all(text.strip() in prompt for text in texts) and (not tools or "the place" in prompt)


def judge(template, name, prompt, instructions):
    """Returns "equal", "rewritten: ...", "refused", "documented: ..." or "DIFFERENT"."""
    messages, values = CONVERSATIONS[name]
    tools = values.get("tools")
    values = {key: value for key, value in values.items() if key != "tools"}
    is_refused, must_be_equal, is_taken = True, False, False
    for names, now, shown_tools in rewritings(messages, tools, instructions):
        for form in forms_of(now):
            expected = rendered(template, form, shown_tools, values, add_generation_prompt=True)
            if expected is None:
                continue
            is_refused, is_taken = False, is_taken or not names
            # Thinking that the request switches off is closed where the template leaves it open.
            if prompt == expected or (values and prompt.startswith(expected) and expected.rstrip().endswith("<think>")):
                return "rewritten: " + ", ".join(names) if names else "equal"
            if prompt == html.unescape(expected):
                return "documented: nothing is escaped"
            must_be_equal |= not names and shows_all(expected, messages, tools) and "None" not in expected
        if must_be_equal:
            return "DIFFERENT"
    if is_refused and prompt.startswith("refused"):
        return "refused"
    return "documented: tojson takes iterators" if not is_taken and shows_all(prompt, messages, tools) else "DIFFERENT"


class Server:
    def __init__(self, url):
        self.url = url

    def post(self, path, body):
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return {"prompt": "refused: " + error.read().decode()}

    def ask(self, body):
        return self.post("/apply-template", body)["prompt"]

    def prompt(self, name):
        messages, values = copy.deepcopy(CONVERSATIONS[name])
        for message in messages:
            for one in message.get("tool_calls", []):
                one["function"]["arguments"] = json.dumps(one["function"]["arguments"], ensure_ascii=False)
        tools = {"tools": values.pop("tools")} if "tools" in values else {}
        return self.ask({"messages": messages, "chat_template_kwargs": values} | tools)


@contextlib.contextmanager
def serving(program, template, scripts={64: "ok"}, positions=128):
    with tempfile.TemporaryDirectory() as folder:
        write_model(folder, scripts, marks=[BOS], end=EOS, template=template, positions=positions)
        settings = pathlib.Path(folder, "tokenizer_config.json")
        write_json(settings, json.loads(settings.read_text(encoding="utf-8")) | {"bos_token": BOS})
        command = [program, "serve", folder, "--port", "0", "--speculative", "none"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            url = re.search(r"http://\S+", process.stdout.readline()).group().rstrip("/")
            for _ in range(600):
                with contextlib.suppress(OSError):
                    if urllib.request.urlopen(url + "/health", timeout=5).status == 200:
                        break
                time.sleep(0.05)
            yield Server(url)
        finally:
            process.terminate()
            process.wait(timeout=60)


def tool_instructions(program):
    with serving(program, "{{ messages[0].content }}") as server:
        return server.ask({"messages": [user("")], "tools": TOOLS}).strip()


def compare_prompts(server, template, instructions):
    for name in CONVERSATIONS:
        prompt = server.prompt(name)
        yield name, judge(template, name, prompt, instructions), prompt


def compare_prefills(server, template):
    for text in BEGINNINGS:
        messages = [user("One?"), assistant(text)]
        expected = rendered(template, messages, None, {}, continue_final_message=True)
        prompt = server.ask({"messages": messages, "continue_final_message": True, "add_generation_prompt": False})
        yield repr(text), "not in transformers" if expected is None else "equal" if prompt == expected else "DIFFERENT", prompt


def said_calls(template):
    """An answer with calls as the template prints it, and (name, arguments) of these calls; None if it prints none."""
    asked = [user("One?")]
    calls = [call(ID, "weather", "Köln"), call(OTHER_ID, "news", "Bonn")]
    prompts = [rendered(template, form, TOOLS, {}, add_generation_prompt=True) for form in forms_of(asked)]
    for count in (2, 1):
        answer = assistant("", tool_calls=calls[:count])
        results = [result(one["id"], one["function"]["name"], "fine") for one in calls[:count]]
        for form, prompt in itertools.product(forms_of([*asked, answer, *results]), filter(None, prompts)):
            text = rendered(template, form, TOOLS, {}) or ""
            same = next((place for place, (a, b) in enumerate(zip(prompt, text)) if a != b), min(len(prompt), len(text)))
            if "<" in text[same - 2:same]:  # not within a mark
                same = text.rindex("<", 0, same)
            said, rest = text[same:].split("fine")[0], prompt[same:].strip()
            if all(one["function"]["arguments"]["city"] in said for one in calls[:count]) and len(rest) < LONGEST_OPENING:
                thought = "Hm.</think>\n\n" if prompt.rstrip().endswith("<think>") and "</think>" not in said else ""
                return thought + said, [(one["function"]["name"], one["function"]["arguments"]) for one in calls[:count]]
    return None


def compare_calls(program, template):
    found = said_calls(template)
    if found is None:
        yield "calls", "prints no calls", ""
        return
    said, expected = found
    body = {"messages": [user("One?")], "tools": TOOLS, "chat_template_kwargs": {}}
    with serving(program, template) as server:
        length = len(server.post("/apply-template", body).get("tokens", []))
    with serving(program, template, {length: said}, length + 2 * len(said.encode()) + 64) as server:
        answer = server.post("/v1/chat/completions", body | {"temperature": 0})
    message = answer.get("choices", [{"message": {}}])[0]["message"]
    calls = [(one["function"]["name"], json.loads(one["function"]["arguments"])) for one in message.get("tool_calls") or []]
    verdict = f"read ({len(calls)})" if calls == expected else "DIFFERENT"
    yield f"{len(expected)} calls", verdict, said + " -> " + json.dumps(message, ensure_ascii=False)


def compare(program, template, arguments, instructions):
    if arguments.calls:
        yield from compare_calls(program, template)
        return
    with serving(program, template) as server:
        yield from compare_prefills(server, template) if arguments.prefill else compare_prompts(server, template, instructions)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--prefill", action="store_true")
    kind.add_argument("--calls", action="store_true")
    parser.add_argument("--verbose", action="store_true", help="tell every result, and the prompts that differ")
    arguments = parser.parse_args()
    program = str(arguments.program.resolve())
    instructions = tool_instructions(program)
    counts, templates = collections.Counter(), sorted(arguments.folder.glob("*.jinja"))
    for path in templates:
        for name, verdict, prompt in compare(program, path.read_text(encoding="utf-8"), arguments, instructions):
            if arguments.calls and any(other in path.name for other in OTHERS):
                verdict = "of others"
            counts[verdict.split(":")[0]] += 1
            if arguments.verbose or verdict == "DIFFERENT":
                print(f"{path.name}, {name}: {verdict}" + (f"\n    {prompt!r}" if verdict == "DIFFERENT" else ""), flush=True)
    print(f"{len(templates)} templates, {datetime.date.today()}: " + ", ".join(f"{n} {kind}" for kind, n in counts.most_common()))
    return 1 if counts["DIFFERENT"] or not templates else 0


if __name__ == "__main__":
    sys.exit(main())
