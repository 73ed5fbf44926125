#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/data/chat/*.json: templates and snippets with the text that Jinja2 renders.

Needs jinja2 >= 3.1.6; with transformers >= 4.50 it also makes openai_requests.json, where transformers' own
apply_chat_template renders what a request in OpenAI's words asks for. The environment is set up as transformers does for chat templates. The templates in
tools/chat_templates.py are our own; they use the constructs of each model family, not the vendors' text.
Usage: make_chat_goldens.py [output folder]
"""

import copy
import datetime
import json
import pathlib
import sys

import jinja2
import jinja2.ext
import jinja2.sandbox

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import chat_snippets
import chat_templates
import chat_templates_dense

NOW = datetime.datetime(2024, 7, 26, 13, 5, 9)


class Generation(jinja2.ext.Extension):
    """{% generation %} renders its body."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("render"), [], [], body).set_lineno(line)

    def render(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def make_environment():
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = NOW.strftime
    return environment


def render(environment, template, context):
    """Returns {"output": text} or, if Jinja2 refuses the template, {"error": message}."""
    try:
        return {"output": environment.from_string(template).render(**context)}
    except Exception as error:  # Jinja2 refuses templates with many types of exceptions
        return {"error": str(error).splitlines()[0] if str(error) else type(error).__name__}


def write(path, data):
    path.write_text(json.dumps(data, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    print(f"{path}: {len(data['cases'])} cases")


def request_of(context):
    """Returns the body of /v1/chat/completions with a context of chat_templates."""
    messages = json.loads(json.dumps(context["messages"]))
    for message in messages:
        for call in message.get("tool_calls", []):
            call["function"]["arguments"] = json.dumps(call["function"]["arguments"], ensure_ascii=False)
        if message["role"] == "user":
            message["content"] = [{"type": "text", "text": line} for line in message["content"].split("\n")]
    body = {"messages": messages, "add_generation_prompt": context["add_generation_prompt"]}
    return body | ({"tools": context["tools"]} if context["tools"] else {})


def transformers_render(template, context):
    from transformers.utils.chat_template_utils import render_jinja_template

    try:
        rendered = render_jinja_template(
            conversations=[context["messages"]],
            tools=context["tools"],
            chat_template=template,
            add_generation_prompt=context["add_generation_prompt"],
            bos_token=context["bos_token"],
            eos_token=context["eos_token"],
        )[0][0]
        return {"output": rendered.replace(datetime.datetime.now().strftime("%d %b %Y"), "@DATE@")}
    except Exception as error:
        return {"error": str(error).splitlines()[0]}


def openai_cases():
    for family, template in chat_templates.TEMPLATES.items():
        # Macros of schemas need variables that no request has; the other templates are covered by jinja2.
        if family == "schema_macros" or family in chat_templates_dense.TEMPLATES:
            continue
        for name, context in chat_templates.contexts(family):
            if not context["messages"] or set(context) - {"roles", "tools", "documents", "bos_token", "eos_token",
                                                          "messages", "add_generation_prompt"}:
                continue
            # No template may change its context.
            expected = transformers_render(template, copy.deepcopy(context))
            yield {"family": family, "name": name, "body": request_of(context)} | expected


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "tests/data/chat")
    environment = make_environment()
    for family, template in chat_templates.TEMPLATES.items():
        cases = []
        for name, context in chat_templates.contexts(family):
            cases.append({"name": name, "context": context} | render(environment, template, context))
        write(folder / f"{family}.json", {"template": template, "cases": cases})
    cases = []
    for snippet in chat_snippets.SNIPPETS:
        cases.append({"template": snippet} | render(environment, snippet, chat_snippets.CONTEXT))
    unexpected = [c for c in cases if ("error" in c) != (c["template"] in chat_snippets.REFUSED)]
    for case in unexpected:
        print("not as sorted into SNIPPETS and REFUSED:", case, file=sys.stderr)
    write(folder / "snippets.json", {"context": chat_snippets.CONTEXT, "cases": cases})
    try:
        import transformers
    except ImportError:
        print("without transformers: openai_requests.json stays as it is", file=sys.stderr)
    else:
        write(folder / "openai_requests.json", {"transformers": transformers.__version__, "cases": list(openai_cases())})
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
