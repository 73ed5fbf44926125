#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists the fields of requests that the openai and anthropic packages know, each with a value of its type.

tools/list_client_fields.py > tests/data/client_fields.json     (needs openai and anthropic)
tools/list_client_fields.py --check tests/data/client_fields.json  fails if the packages know other fields

A field whose type is a list of alternatives (tools, messages, items) has a value for each alternative.
src/server/api/answers/client_fields_test.cc sends each to the server.
"""
import collections.abc
import importlib.metadata
import json
import sys
import types
import typing
from typing import get_args, get_origin

import anthropic.types.beta.message_create_params as beta_messages
import anthropic.types.message_create_params as messages
import openai.types.chat.completion_create_params as chat
import openai.types.completion_create_params as completions
import openai.types.embedding_create_params as embeddings
import openai.types.responses.response_create_params as responses
import typing_extensions

ROUTES = {
    "/v1/chat/completions": [chat.CompletionCreateParamsNonStreaming, chat.CompletionCreateParamsStreaming],
    "/v1/completions": [completions.CompletionCreateParamsNonStreaming, completions.CompletionCreateParamsStreaming],
    "/v1/responses": [responses.ResponseCreateParamsNonStreaming, responses.ResponseCreateParamsStreaming],
    "/v1/embeddings": [embeddings.EmbeddingCreateParams],
    "/v1/messages": [messages.MessageCreateParamsNonStreaming, beta_messages.MessageCreateParamsNonStreaming,
                     beta_messages.MessageCreateParamsStreaming],
}
WRAPPERS = (typing.Required, typing.NotRequired, typing_extensions.Required, typing_extensions.NotRequired,
            typing_extensions.Annotated, typing.Annotated)
LISTS = (list, collections.abc.Iterable, collections.abc.Sequence, tuple)
MAX_DEPTH = 6


def plain(hint):
    while get_origin(hint) in WRAPPERS:
        hint = get_args(hint)[0]
    return hint


def alternatives(hint):
    """The types that a hint allows, without None."""
    hint = plain(hint)
    if get_origin(hint) in (typing.Union, types.UnionType):
        return [one for part in get_args(hint) if part is not type(None) for one in alternatives(part)]
    return [hint]


def is_list(hint):
    origin = get_origin(hint)
    return origin in LISTS or getattr(origin, "__name__", "") == "SequenceNotStr"


def hints_of(kind):
    hints = {}
    for base in reversed(kind.__mro__):
        if base is not dict and getattr(base, "__annotations__", None):
            hints.update(typing_extensions.get_type_hints(base, include_extras=True))
    hints.update(typing_extensions.get_type_hints(kind, include_extras=True))
    return hints


def is_required(kind, name, hint):
    return name in getattr(kind, "__required_keys__", ()) or get_origin(hint) in (typing.Required, typing_extensions.Required)


def sample(hint, depth=0):
    """A value of the type, with all required members."""
    hint = alternatives(hint)[0]
    if is_list(hint):
        return [sample(get_args(hint)[0], depth + 1)]
    origin = get_origin(hint)
    if origin in (typing.Literal, typing_extensions.Literal):
        return get_args(hint)[0]
    if origin is dict:
        return {}
    if hint in (str, bytes):
        return "x"
    if hint is bool:
        return True
    if hint in (int, float):
        return 1
    if isinstance(hint, type) and hasattr(hint, "__required_keys__"):
        if depth > MAX_DEPTH:
            return {}
        return {name: sample(one, depth + 1) for name, one in hints_of(hint).items() if is_required(hint, name, one)}
    if isinstance(hint, type) and hasattr(hint, "model_fields"):
        return {name: sample(one.annotation, depth + 1) for name, one in hint.model_fields.items() if one.is_required()}
    return {}


def members_of(hint):
    return hints_of(hint) if isinstance(hint, type) and hasattr(hint, "__required_keys__") else {}


def items_of(hint):
    """Values of an item: its required members, all members, and each kind of part that its lists may have."""
    values = [sample(hint)]
    members = members_of(hint)
    if not members:
        return values
    values.append({name: sample(one, 1) for name, one in members.items()})
    for name, one in members.items():
        for kind in alternatives(one):
            if is_list(kind) and len(alternatives(get_args(kind)[0])) > 1:
                values += [dict(values[0], **{name: [sample(part, 2)]}) for part in alternatives(get_args(kind)[0])]
    return values


def samples(hint):
    """A value for each alternative of the type, and of the items of a list."""
    values = []
    for one in alternatives(hint):
        if is_list(one):
            values += [[value] for item in alternatives(get_args(one)[0]) for value in items_of(item)]
        else:
            values += items_of(one)
    return values


def unique(values):
    return list({json.dumps(value, sort_keys=True): value for value in values}.values())


def fields_of(kinds):
    fields = {}
    for kind in kinds:
        for name, hint in hints_of(kind).items():
            fields[name] = unique(fields.get(name, []) + samples(hint))
    return dict(sorted(fields.items()))


def main():
    listed = {"packages": {name: importlib.metadata.version(name) for name in ("openai", "anthropic")},
              "routes": {route: fields_of(kinds) for route, kinds in ROUTES.items()}}
    if len(sys.argv) == 3 and sys.argv[1] == "--check":
        with open(sys.argv[2], encoding="utf-8") as file:
            known = json.load(file)["routes"]
        new = [f"{route}: {name}" for route, fields in listed["routes"].items() for name in fields
               if name not in known.get(route, {})]
        if new:
            sys.exit("the packages have new fields; run tools/list_client_fields.py: " + ", ".join(new))
        return
    # One value on a line keeps changes readable.
    print("{\"packages\": " + json.dumps(listed["packages"]) + ",\n\"routes\": {")
    routes = []
    for route, fields in listed["routes"].items():
        lines = [f"  {json.dumps(name)}: [" + ",\n    ".join(json.dumps(value) for value in values) + "]"
                 for name, values in fields.items()]
        routes.append(f"{json.dumps(route)}: {{\n" + ",\n".join(lines) + "}")
    print(",\n".join(routes) + "}}")


if __name__ == "__main__":
    main()
