#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Agents' clients against `outrider serve`, default models, over loopback. They are the SDKs of OpenAI (chat and
responses) and Anthropic, litellm, langchain-openai, llm, instructor, pydantic-ai and lm_eval, each with the
conversation that it is used for. 1,000 requests of all APIs follow, 32 at once, each equal to the same request by
itself.

Usage: clients_conformance.py OUTRIDER|URL [name...]   (tools/check_clients.sh installs the clients and calls this)
With a URL the clients talk to the server there, of any make, which must serve `outrider-small` with the key KEY.
"""

import array
import asyncio
import base64
import concurrent.futures
import contextlib
import gzip
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # litellm would fetch prices

import anthropic
import openai
import pydantic

from openai_conformance import KEY, MODEL, client, expect, refused, serving

SCHEMA = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 8}}, "required": ["city"],
          "additionalProperties": False}
TOOL = {"type": "function", "function": {"name": "weather", "description": "The weather", "parameters": SCHEMA}}
ASK = "What is the weather in Bonn?"
TURNS = 3  # of a tool loop
LONG = 200  # tokens, enough for any call and any city


class City(pydantic.BaseModel):
    city: str = pydantic.Field(max_length=8)


def check_call(name, arguments):
    expect(name == "weather" and set(json.loads(arguments)) == {"city"}, name, arguments)


# Each takes the URL of a server.


def test_openai_agent_loop(url):
    messages = [{"role": "user", "content": ASK}]
    for _ in range(TURNS):
        answer = client(url).chat.completions.create(model=MODEL, messages=messages, tools=[TOOL], max_tokens=LONG,
                                                     tool_choice="required").choices[0]
        call = answer.message.tool_calls[0]
        check_call(call.function.name, call.function.arguments)
        expect(answer.message.content is None, answer)
        messages += [answer.message, {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
    stream = client(url).chat.completions.create(model=MODEL, messages=messages, tools=[TOOL], max_tokens=8, stream=True)
    chunks = list(stream)
    expect(chunks[-1].choices[0].finish_reason in ("stop", "length", "tool_calls"), chunks[-1])


def test_openai_responses(url):
    create = client(url).responses.create
    first = create(model=MODEL, input="Once upon a time", instructions="Be brief.", max_output_tokens=8, temperature=0)
    expect(first.object == "response" and first.id.startswith("resp_") and first.output_text, first)
    expect(first.status in ("completed", "incomplete") and first.usage.output_tokens <= 8, first)
    second = create(model=MODEL, input="And then?", previous_response_id=first.id, max_output_tokens=8)
    expect(second.usage.input_tokens > first.usage.input_tokens, second.usage)
    expect(client(url).responses.retrieve(first.id).output_text == first.output_text)
    expect(client(url).responses.input_items.list(first.id).data[0].role == "user")
    client(url).responses.delete(first.id)
    refused(openai.NotFoundError, lambda: client(url).responses.retrieve(first.id))
    refused(openai.NotFoundError, lambda: create(model=MODEL, input="x", previous_response_id=first.id))
    expect(client(url).responses.input_tokens.count(model=MODEL, input="Once upon a time").input_tokens > 3)
    refused(openai.BadRequestError, lambda: create(model=MODEL, input="x", background=True))


def test_openai_responses_stream(url):
    ask = dict(model=MODEL, input="Once upon a time", max_output_tokens=12, temperature=0)
    whole = client(url).responses.create(**ask)
    events = list(client(url).responses.create(stream=True, **ask))
    expect([event.sequence_number for event in events] == list(range(len(events))))
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    expect(text == whole.output_text, text)
    expect(events[0].type == "response.created" and events[-1].response.output_text == text, events[-1])
    with client(url).responses.stream(model=MODEL, input=ASK, text_format=City, max_output_tokens=LONG) as stream:
        expect(isinstance(stream.get_final_response().output_parsed, City))


def test_openai_responses_tools(url):
    tool = {"type": "function", "name": "weather", "parameters": SCHEMA, "strict": True}
    previous, items = None, ASK
    for _ in range(TURNS):
        answer = client(url).responses.create(model=MODEL, input=items, tools=[tool], tool_choice="required",
                                              previous_response_id=previous, max_output_tokens=LONG)
        call = answer.output[0]
        check_call(call.name, call.arguments)
        previous, items = answer.id, [{"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}]
    stateless = [{"role": "user", "content": ASK}, *answer.output, *items]
    final = client(url).responses.create(model=MODEL, input=stateless, tools=[tool], store=False, max_output_tokens=8)
    expect(final.status in ("completed", "incomplete"), final)


def test_openai_responses_schema(url):
    parsed = client(url).responses.parse(model=MODEL, input=ASK, text_format=City, max_output_tokens=LONG)
    expect(isinstance(parsed.output_parsed, City), parsed)


def test_openai_embeddings(url):
    for encoding in ("float", "base64"):
        answer = client(url).embeddings.create(model=MODEL, input=["a red ball", "a red ball", "the dog"],
                                               encoding_format=encoding)
        first, again, other = [item.embedding for item in answer.data]
        if encoding == "base64":
            first, again, other = [array.array("f", base64.b64decode(text)).tolist() for text in (first, again, other)]
        expect(first == again != other and abs(sum(x * x for x in first) - 1) < 1e-4, first[:4])
    expect(answer.usage.prompt_tokens > 0 and answer.usage.prompt_tokens == answer.usage.total_tokens, answer.usage)


def claude(url):
    return anthropic.Anthropic(base_url=url, api_key=KEY, max_retries=0, timeout=120)


def test_anthropic(url):
    create = claude(url).messages.create
    ask = dict(model=MODEL, max_tokens=12, system="Be brief.", messages=[{"role": "user", "content": "Once upon a time"}],
               extra_body={"temperature": 0})
    whole = create(**ask)
    expect(whole.type == "message" and whole.content[0].text and whole.stop_reason in ("end_turn", "max_tokens"), whole)
    with claude(url).messages.stream(**ask) as stream:
        text = "".join(stream.text_stream)
        expect(text == whole.content[0].text, text)
        expect(stream.get_final_message().stop_reason == whole.stop_reason)
    count = claude(url).messages.count_tokens(model=MODEL, system=ask["system"], messages=ask["messages"]).input_tokens
    usage = whole.usage
    expect(count == usage.input_tokens + usage.cache_read_input_tokens, count, usage)
    stop = text[1:4]
    stopped = create(stop_sequences=[stop], **ask)
    expect(stopped.stop_reason == "stop_sequence" and stopped.stop_sequence == stop, stopped)


def test_anthropic_tools(url):
    tool = {"name": "weather", "description": "The weather", "input_schema": SCHEMA}
    messages = [{"role": "user", "content": ASK}]
    for _ in range(TURNS):
        with claude(url).messages.stream(model=MODEL, max_tokens=LONG, tools=[tool], messages=messages,
                                         tool_choice={"type": "any"}) as stream:
            answer = stream.get_final_message()
        use = answer.content[0]
        expect(use.type == "tool_use" and use.name == "weather" and set(use.input) == {"city"}, answer)
        expect(answer.stop_reason == "tool_use", answer)
        messages += [{"role": "assistant", "content": answer.content},
                     {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use.id, "content": "sunny"}]}]
    final = claude(url).messages.create(model=MODEL, max_tokens=8, tools=[tool], messages=messages)
    expect(final.role == "assistant", final)


def test_anthropic_errors(url):
    create = claude(url).messages.create
    hi = [{"role": "user", "content": "x"}]
    error = refused(anthropic.BadRequestError, lambda: create(model=MODEL, max_tokens=0, messages=hi))
    expect(error.body["error"]["type"] == "invalid_request_error", error.body)
    refused(anthropic.NotFoundError, lambda: create(model="other", max_tokens=5, messages=hi))
    wrong = anthropic.Anthropic(base_url=url, api_key="wrong-key-of-some-length", max_retries=0)
    refused(anthropic.AuthenticationError, lambda: wrong.messages.create(model=MODEL, max_tokens=5, messages=hi))


def test_litellm(url):
    import litellm

    ask = dict(model="openai/" + MODEL, api_base=url + "/v1", api_key=KEY, max_tokens=12, num_retries=0)
    messages = [{"role": "user", "content": ASK}]
    for _ in range(TURNS):
        answer = litellm.completion(messages=messages, tools=[TOOL], tool_choice="required",
                                    **ask | {"max_tokens": LONG}).choices[0].message
        call = answer.tool_calls[0]
        check_call(call.function.name, call.function.arguments)
        messages += [answer.model_dump(), {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
    chunks = list(litellm.completion(messages=messages, stream=True, **ask))
    expect(any(chunk.choices[0].delta.content for chunk in chunks), chunks)
    batch = litellm.batch_completion(messages=[[{"role": "user", "content": text}] for text in "abc"], **ask)
    expect(len(batch) == 3 and all(answer.choices for answer in batch), batch)
    refused(litellm.BadRequestError, lambda: litellm.completion(messages=messages, **ask | {"max_tokens": -2}))
    claude_form = litellm.completion(model="anthropic/" + MODEL, api_base=url, api_key=KEY, max_tokens=8, messages=messages[:1])
    expect(claude_form.choices[0].message.role == "assistant", claude_form)


def test_langchain(url):
    from langchain_core.messages import HumanMessage, ToolMessage
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(model=MODEL, base_url=url + "/v1", api_key=KEY, max_tokens=LONG, max_retries=0)
    forced = model.bind_tools([TOOL], tool_choice="required")
    messages = [HumanMessage(ASK)]
    for _ in range(TURNS):
        answer = forced.invoke(messages)
        call = answer.tool_calls[0]
        expect(call["name"] == "weather" and set(call["args"]) == {"city"}, answer)
        messages += [answer, ToolMessage("sunny", tool_call_id=call["id"])]
    expect("".join(part.text for part in model.stream(messages)))
    expect(isinstance(model.with_structured_output(City, method="json_schema").invoke(ASK), City))
    expect(len(model.batch(["a", "b", "c"])) == 3)
    responses = ChatOpenAI(model=MODEL, base_url=url + "/v1", api_key=KEY, use_responses_api=True, max_retries=0)
    expect(responses.invoke("Once upon a time", max_tokens=8).text)


def test_llm(url):
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "extra-openai-models.yaml").write_text(
            f"- model_id: served\n  model_name: {MODEL}\n  api_base: {url}/v1\n  api_key_name: served\n"
            "  supports_schema: true\n  supports_tools: true\n")
        pathlib.Path(folder, "keys.json").write_text(json.dumps({"served": KEY}))
        program = pathlib.Path(sys.executable).parent / "llm"

        def ask(*options):
            command = [program, "-m", "served", "-o", "max_tokens", str(LONG), *options]
            done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                                  env=os.environ | {"LLM_USER_PATH": folder})
            expect(done.returncode == 0, done.stderr)
            return done.stdout

        expect(ask("Once upon a time").strip())
        expect(ask("--no-stream", "-s", "Be brief.", "Once upon a time").strip())
        City.model_validate_json(ask("--no-stream", "--schema", json.dumps(SCHEMA), ASK))
        ask("-c", "And then?")


def test_instructor(url):
    import instructor

    for mode in (instructor.Mode.TOOLS, instructor.Mode.JSON_SCHEMA):
        served = instructor.from_openai(client(url), mode=mode)
        city = served.chat.completions.create(model=MODEL, response_model=City, max_tokens=LONG, max_retries=1,
                                              messages=[{"role": "user", "content": ASK}])
        expect(isinstance(city, City), city)


def test_pydantic_ai(url):
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = OpenAIProvider(base_url=url + "/v1", api_key=KEY)
    for model in (OpenAIChatModel(MODEL, provider=provider), OpenAIResponsesModel(MODEL, provider=provider)):
        agent = Agent(model, output_type=City, model_settings={"max_tokens": LONG})
        result = asyncio.run(agent.run(ASK))
        expect(isinstance(result.output, City), result)
        talk = Agent(model, model_settings={"max_tokens": 8})
        expect(isinstance(asyncio.run(talk.run(ASK, message_history=result.all_messages())).output, str))


def test_lm_eval(url):
    from lm_eval.api.instance import Instance
    from lm_eval.models.openai_completions import LocalCompletionsAPI

    os.environ["OPENAI_API_KEY"] = KEY
    served = LocalCompletionsAPI(model=MODEL, base_url=url + "/v1/completions", tokenizer_backend="remote",
                                 batch_size=20, max_length=256, auth_token=KEY)
    endings = [" time", " hill", " xylophone"] * 10
    scores = served.loglikelihood([Instance("loglikelihood", {}, ("Once upon a", ending), index)
                                   for index, ending in enumerate(endings)])
    expect(len(scores) == 30 and all(score < 0 for score, _ in scores), scores)
    expect(scores[0] > scores[2] and scores[0] == scores[3], scores)
    texts = served.generate_until([Instance("generate_until", {}, ("Once", {"until": ["."], "max_gen_toks": 8}), 0)])
    expect(len(texts) == 1 and "." not in texts[0], texts)


def fetch(url, path, body=None, headers=None, method=None):
    """Status, headers and body of a plain request."""
    data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data=data, method=method, headers={
        "Authorization": "Bearer " + KEY, "Content-Type": "application/json"} | (headers or {}))
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


def test_plain_requests(url):
    expect(fetch(url, "/models")[0] == 200 and fetch(url, "/chat/completions", {"messages": [
        {"role": "user", "content": "x"}], "max_tokens": 2.0})[0] == 200)
    status, headers, body = fetch(url, "/v1/models", method="HEAD")
    expect(status == 200 and int(headers["Content-Length"]) > 0 and body == b"", headers)
    short = {"prompt": ["x"] * 40, "n_predict": 2}
    status, _, body = fetch(url, "/v1/completions", short)
    expect(status == 200 and len(json.loads(body)["choices"]) == 40, body)
    packed = gzip.compress(json.dumps({"prompt": "x", "max_tokens": 2}).encode())
    expect(fetch(url, "/v1/completions", packed, {"Content-Encoding": "gzip"})[0] == 200)
    expect(fetch(url, "/v1/completions", {"prompt": "x", "max_token": 2})[0] == 400)


def mixed_request(index):
    """Path, body and reader of one request; each reader gives the text and whether it has the required form."""
    draw = random.Random(index)
    text = draw.choice(["Once upon a time", "The dog", "Tom and Lily"])
    common = {"seed": index, "temperature": draw.choice([0, 0.7, 1.0])}
    chat = common | {"messages": [{"role": "user", "content": text}], "max_tokens": LONG}

    def city(written):
        return written, City.model_validate_json(written) is not None

    return [
        ("/v1/chat/completions", chat | {"response_format": {"type": "json_object", "schema": SCHEMA}},
         lambda answer: city(answer["choices"][0]["message"]["content"])),
        ("/v1/chat/completions", chat | {"tools": [TOOL], "tool_choice": "required"},
         lambda answer: city(answer["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"])),
        ("/v1/messages", chat | {"tools": [{"name": "weather", "input_schema": SCHEMA}], "tool_choice": {"type": "any"}},
         lambda answer: city(json.dumps(answer["content"][0]["input"]))),
        ("/v1/responses", common | {"input": text, "max_output_tokens": LONG, "store": draw.random() < 0.5,
                                    "text": {"format": {"type": "json_schema", "name": "city", "schema": SCHEMA}}},
         lambda answer: city(answer["output"][0]["content"][0]["text"])),
        ("/v1/completions", common | {"prompt": text, "max_tokens": 40, "guided_regex": "[0-9]{3}-[a-f]{2}"},
         lambda answer: (answer["choices"][0]["text"], re.fullmatch("[0-9]{3}-[a-f]{2}", answer["choices"][0]["text"]))),
        ("/v1/completions", common | {"prompt": text, "max_tokens": 30},
         lambda answer: (answer["choices"][0]["text"], True)),
    ][index % 6]


def test_thousand_mixed_requests(url):
    def ask(index):
        path, body, read = mixed_request(index)
        status, _, answer = fetch(url, path, body)
        expect(status == 200, answer)
        text, is_valid = read(json.loads(answer))
        expect(is_valid, path, text)
        return text

    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        together = list(pool.map(ask, range(1000)))
    alone = [ask(index) for index in range(1000)]
    different = [index for index in range(1000) if together[index] != alone[index]]
    expect(not different, different)


def server_of(program):
    if program.startswith("http://"):
        return contextlib.nullcontext((program.rstrip("/"), None))
    return serving(str(pathlib.Path(program).resolve()), "--speculative", "auto", "--max-batch", "32")


def main():
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    names = sys.argv[2:]
    failed = []
    with server_of(sys.argv[1]) as (url, _):
        for name, test in list(globals().items()):
            if not name.startswith("test_") or (names and name not in names):
                continue
            try:
                test(url)
                print(f"ok      {name}", flush=True)
            except Exception as error:  # every failure is told, then the next test runs
                failed.append(name)
                print(f"FAILED  {name}: {type(error).__name__}: {error}", flush=True)
    print(f"{len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
