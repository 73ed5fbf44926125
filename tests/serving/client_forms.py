#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clients from their packages and the forms of calls. For each family a model says what such a model writes
(family_forms.py), and each client holds a loop of five turns with a tool, a schema for the last answer, whole and in
streams. Calls, arguments and the last answer must be the ones that the model wrote.

Usage: client_forms.py OUTRIDER [--check FILE | --write FILE] [family...]
(tools/check_clients.sh installs the clients and calls this)
It ends with a table of the clients and the forms. FILE is the document between whose marks this table stands.
"""

import argparse
import asyncio
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # litellm would fetch prices

import anthropic
import litellm
import openai
import pydantic
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

import family_forms
from openai_conformance import expect, wait_until_ready
from scripted_model import write_model

MODEL, KEY = "scripted", "unused"
BEGIN, END = "<!-- table of client_forms.py -->\n\n", "\n<!-- end of the table -->\n"  # around the table in a document
ASK = "How is the weather?"
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}, "metric": {"type": "boolean"},
                                               "days": {"type": "integer"}},
              "required": ["city", "metric", "days"], "additionalProperties": False}
FUNCTION = {"name": "weather", "description": "The weather", "parameters": PARAMETERS}


class Report(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    city: str
    days: int


SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
          "required": ["city", "days"], "additionalProperties": False}


class Turns:
    """The calls that the model has still to make."""

    def __init__(self, form):
        self.left = [[family_forms.arguments_of(day) for day in days] for days in form.turns()]

    def check(self, calls):
        """`calls`: (name, arguments) of an answer. Returns whether there were any."""
        calls = [(name, json.loads(arguments) if isinstance(arguments, str) else arguments) for name, arguments in calls]
        expected = [("weather", arguments) for arguments in self.left.pop(0)] if self.left else []
        expect(calls == expected, calls, expected)
        return bool(expected)

    def finish(self, answer):
        expect(not self.left and answer == family_forms.ANSWER, self.left, answer)


def chat_loop(ask, turns):
    """ask(messages) returns (content, calls as (id, name, arguments)) of a chat."""
    messages = [{"role": "user", "content": ASK}]
    while True:
        content, calls = ask(messages)
        if not turns.check([call[1:] for call in calls]):
            return turns.finish(json.loads(content))
        expect(not content, content)
        messages.append({"role": "assistant", "content": content, "tool_calls": [
            {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}} for id, name, arguments in calls]})
        messages += [{"role": "tool", "tool_call_id": id, "content": "sunny"} for id, _, _ in calls]


def joined_chunks(chunks):
    content, calls, finish = "", {}, None
    for chunk in chunks:
        for choice in chunk.choices:
            finish = choice.finish_reason or finish
            content += choice.delta.content or ""
            for part in choice.delta.tool_calls or []:
                call = calls.setdefault(part.index, [None, "", ""])
                call[0] = part.id or call[0]
                call[1] += part.function.name or ""
                call[2] += part.function.arguments or ""
    expect(finish == ("tool_calls" if calls else "stop"), finish)
    return content, [tuple(call) for call in calls.values()]


def message_parts(choice):
    calls = choice.message.tool_calls or []
    expect(choice.finish_reason == ("tool_calls" if calls else "stop"), choice)
    return choice.message.content, [(call.id, call.function.name, call.function.arguments) for call in calls]


def chat_request(streams):
    form = {"type": "json_schema", "json_schema": {"name": "report", "schema": SCHEMA, "strict": True}}
    return dict(tools=[{"type": "function", "function": FUNCTION}], response_format=form, max_tokens=500, stream=streams)


def openai_chat(url, turns, streams):
    create = openai.OpenAI(base_url=url + "/v1", api_key=KEY, max_retries=0).chat.completions.create

    def ask(messages):
        answer = create(model=MODEL, messages=messages, **chat_request(streams))
        return joined_chunks(answer) if streams else message_parts(answer.choices[0])

    chat_loop(ask, turns)


def litellm_chat(url, turns, streams):
    def ask(messages):
        answer = litellm.completion(model="openai/" + MODEL, api_base=url + "/v1", api_key=KEY, messages=messages,
                                    num_retries=0, **chat_request(streams))
        return joined_chunks(answer) if streams else message_parts(answer.choices[0])

    chat_loop(ask, turns)


def openai_responses(url, turns, streams):
    create = openai.OpenAI(base_url=url + "/v1", api_key=KEY, max_retries=0).responses.create
    items = [{"role": "user", "content": ASK}]
    while True:
        answer = create(model=MODEL, input=items, tools=[{"type": "function", **FUNCTION}], stream=streams, store=False,
                        max_output_tokens=500,
                        text={"format": {"type": "json_schema", "name": "report", "schema": SCHEMA, "strict": True}})
        if streams:
            answer = [event for event in answer if event.type == "response.completed"][0].response
        calls = [item for item in answer.output if item.type == "function_call"]
        if not turns.check([(call.name, call.arguments) for call in calls]):
            return turns.finish(json.loads(answer.output_text))
        items += answer.output
        items += [{"type": "function_call_output", "call_id": call.call_id, "output": "sunny"} for call in calls]


def anthropic_messages(url, turns, streams):
    messages = anthropic.Anthropic(base_url=url, api_key=KEY, max_retries=0).messages
    history = [{"role": "user", "content": ASK}]
    tool = {"name": "weather", "description": "The weather", "input_schema": PARAMETERS}
    while True:
        request = dict(model=MODEL, max_tokens=500, messages=history, tools=[tool],
                       output_config={"format": {"type": "json_schema", "schema": SCHEMA}})
        if streams:
            with messages.stream(**request) as stream:
                answer = stream.get_final_message()
        else:
            answer = messages.create(**request)
        uses = [block for block in answer.content if block.type == "tool_use"]
        expect(answer.stop_reason == ("tool_use" if uses else "end_turn"), answer)
        if not turns.check([(use.name, use.input) for use in uses]):
            return turns.finish(json.loads("".join(block.text for block in answer.content if block.type == "text")))
        history += [{"role": "assistant", "content": answer.content},
                    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use.id, "content": "sunny"}
                                                 for use in uses]}]


def langchain(url, turns, streams):
    model = ChatOpenAI(model=MODEL, base_url=url + "/v1", api_key=KEY, max_retries=0, max_tokens=500)
    # Its parser of schemas takes strict tools only.
    model = model.bind_tools([{"type": "function", "function": FUNCTION | {"strict": True}}]).bind(
        response_format=chat_request(False)["response_format"])
    messages = [HumanMessage(ASK)]
    while True:
        if streams:
            answer = None
            for part in model.stream(messages):
                answer = part if answer is None else answer + part
        else:
            answer = model.invoke(messages)
        if not turns.check([(call["name"], call["args"]) for call in answer.tool_calls]):
            return turns.finish(json.loads(answer.text))
        messages += [answer, *(ToolMessage("sunny", tool_call_id=call["id"]) for call in answer.tool_calls)]


def pydantic_agent(kind):
    def run(url, turns, streams):
        model = kind(MODEL, provider=OpenAIProvider(base_url=url + "/v1", api_key=KEY))
        agent = Agent(model, output_type=NativeOutput(Report), model_settings={"max_tokens": 500}, retries=0)
        called = []

        @agent.tool_plain(sequential=True)
        def weather(city: str, metric: bool, days: int) -> str:
            """The weather."""
            called.append({"city": city, "metric": metric, "days": days})
            return "sunny"

        async def stream():
            async with agent.run_stream(ASK) as result:
                return await result.get_output()

        output = asyncio.run(stream() if streams else agent.run(ASK))
        report = output if streams else output.output
        expected = [arguments for turn in turns.left for arguments in turn]
        expect(called == expected, called, expected)
        turns.left = []
        turns.finish(report.model_dump())

    return run


CLIENTS = {"openai, chat": openai_chat, "openai, responses": openai_responses, "anthropic": anthropic_messages,
           "litellm": litellm_chat, "langchain-openai": langchain, "pydantic-ai, chat": pydantic_agent(OpenAIChatModel),
           "pydantic-ai, responses": pydantic_agent(OpenAIResponsesModel)}


@contextlib.contextmanager
def scripted_server(program, form, scripts=None):
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as log:
        write_model(folder, scripts or form.scripts(), marks=form.marks, end=form.stop, template=form.template(),
                    positions=family_forms.FIRST + 7 * family_forms.STEP)
        command = [program, "serve", folder, "--port", "0", "--served-model-name", MODEL, "--speculative", "none"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            found = re.search(r"http://\S+", process.stdout.readline())
            log.seek(0)
            expect(found, log.read())
            url = found.group().rstrip("/")
            wait_until_ready(url)
            yield url
        finally:
            process.terminate()
            process.wait(timeout=60)


def table_of(held):
    """`held`: {client: families}"""
    rows = ["| client | forms in which it held a loop |", "|---|---|"]
    for client, families in held.items():
        missing = [family for family in family_forms.FORMS if family not in families]
        rows.append(f"| {client} | " + (f"all {len(families)}" if not missing else "not " + ", ".join(missing)) + " |")
    return "\n".join(rows) + "\n"


def put_table(path, table, writes):
    """Returns whether the document has this table; `writes` puts it there."""
    before, rest = path.read_text(encoding="utf-8").split(BEGIN)
    found, after = rest.split(END)
    if writes:
        path.write_text(before + BEGIN + table + END + after, encoding="utf-8")
    elif found != table:
        print(f"{path} has another table: run this program with --write {path}")
        return False
    return True


def hold_loops(program, families):
    """Returns the families whose loops each client held, and the number of failures."""
    held = {client: [] for client in CLIENTS}
    failed = 0
    for name in families:
        form = family_forms.FORMS[name]
        with scripted_server(program, form) as url:
            for client, loop in CLIENTS.items():
                try:
                    for streams in (False, True):
                        loop(url, Turns(form), streams)
                    held[client].append(name)
                except Exception as error:  # every failure is told, then the next client goes on
                    failed += 1
                    print(f"FAILED  {name}, {client}: {type(error).__name__}: {error}", flush=True)
        print(f"{name}: {sum(name in held_by for held_by in held.values())} of {len(CLIENTS)} clients", flush=True)
    return held, failed


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("families", nargs="*")
    parser.add_argument("--check", type=pathlib.Path)
    parser.add_argument("--write", type=pathlib.Path)
    arguments = parser.parse_args()
    document = arguments.write or arguments.check
    if arguments.families and document:
        parser.error("a table has all families")
    held, failed = hold_loops(str(arguments.program.resolve()), arguments.families or family_forms.FORMS)
    table = table_of(held)
    print(table + f"{failed} failed")
    is_same = document is None or put_table(document, table, writes=arguments.write is not None)
    return 0 if failed == 0 and is_same else 1


if __name__ == "__main__":
    sys.exit(main())
