# SPDX-License-Identifier: Apache-2.0
import asyncio
import json
import logging
import re
import signal
import subprocess
import sys
import textwrap
import time

import numpy
import outrider
import pytest
from conftest import MODELS, PROMPT, ROOT
from outrider import (LLM, GuidedDecodingParams, KvCacheConfig, NGramDecodingConfig, SamplingParams,
                      StructuredOutputsParams)
from outrider._program import PROGRAM


def test_one_prompt_and_several(llm):
    one = llm.generate(PROMPT, SamplingParams(max_tokens=8))
    assert one[0] is one and len(one) == 1 and list(one) == [one]
    several = llm.generate([PROMPT, {"prompt": PROMPT}, one.prompt_token_ids], SamplingParams(max_tokens=8))
    assert [output.outputs[0].token_ids for output in several] == [one.outputs[0].token_ids] * 3
    assert several[1].prompt == PROMPT and several[2].prompt is None
    own = llm.generate([PROMPT, PROMPT], [SamplingParams(max_tokens=2), SamplingParams(max_tokens=3)])
    assert [len(output.outputs[0].token_ids) for output in own] == [2, 3]
    with pytest.raises(ValueError, match="sampling_params for each of 2 prompts"):
        llm.generate([PROMPT, PROMPT], [SamplingParams()])


def test_streaming_gives_the_same(llm):
    whole = llm.generate(PROMPT, SamplingParams(max_tokens=128)).outputs[0]
    texts, tokens = [], []
    for update in llm.generate_async(PROMPT, SamplingParams(max_tokens=128)):
        texts.append(update.outputs[0].text_diff)
        tokens += update.outputs[0].token_ids_diff
    assert "".join(texts) == whole.text and tokens == whole.token_ids and len(texts) > 1

    async def follow():
        outputs = [llm.generate_async(PROMPT, SamplingParams(max_tokens=128)) for _ in range(3)]
        diffs = "".join([update.outputs[0].text_diff async for update in outputs[0]])
        return diffs, await outputs[1], await outputs[2].aresult()

    diffs, second, third = asyncio.run(follow())
    assert diffs == second.outputs[0].text == third.outputs[0].text == whole.text


def test_abort_and_timeout(llm):
    output = llm.generate_async(PROMPT, SamplingParams(max_tokens=400, ignore_eos=True))
    with pytest.raises(TimeoutError, match="not finished after 0.0"):
        output.result(timeout=0.0)
    output.abort()
    assert output.result().outputs[0].finish_reason == "cancelled"


def test_several_answers(llm):
    params = SamplingParams(max_tokens=12, n=3, temperature=1.0, seed=1)
    first, again = llm.generate(PROMPT, params), llm.generate(PROMPT, params)
    assert [o.token_ids for o in first.outputs] == [o.token_ids for o in again.outputs]
    assert len({tuple(o.token_ids) for o in first.outputs}) > 1


def test_logprobs_are_numpy(llm):
    params = SamplingParams(max_tokens=6, logprobs=3, prompt_logprobs=2)
    output = llm.generate(PROMPT, params)
    answer = output.outputs[0]
    assert answer.logprobs.dtype == numpy.float32 and answer.logprobs.shape == (len(answer.token_ids),)
    assert answer.top_token_ids.shape == answer.top_logprobs.shape == (len(answer.token_ids), 3)
    assert list(answer.top_token_ids[:, 0]) == answer.token_ids  # greedy
    assert answer.prompt_logprobs.shape == (len(output.prompt_token_ids) - 1,)
    assert answer.cumulative_logprob == pytest.approx(float(answer.logprobs.sum()))
    assert llm.generate(PROMPT, SamplingParams(max_tokens=2)).outputs[0].logprobs is None


def test_stops_and_bad_words(llm):
    text = llm.generate(PROMPT, SamplingParams(max_tokens=12)).outputs[0].text
    word = text.split()[1]
    stopped = llm.generate(PROMPT, SamplingParams(max_tokens=12, stop=word)).outputs[0]
    assert stopped.finish_reason == "stop" and word not in stopped.text
    assert word not in llm.generate(PROMPT, SamplingParams(max_tokens=12, bad=[word])).outputs[0].text


def test_errors_say_what_was_expected(llm):
    with pytest.raises(ValueError, match="top_p: expected a number from 1e-06 to 1, found '2'"):
        llm.generate(PROMPT, SamplingParams(top_p=2))
    with pytest.raises(TypeError, match="unknown sampling parameter 'temprature'; did you mean 'temperature'"):
        SamplingParams(temprature=1)
    with pytest.raises(ValueError, match="best_of"):
        SamplingParams(best_of=4)
    with pytest.raises(ValueError, match="unknown key 'max_bach_size'"):
        LLM("builtin", max_bach_size=4)
    with pytest.raises(ValueError, match="no such model: 'nowhere'"):
        LLM("nowhere")
    with pytest.raises(ValueError, match=r"messages\[0\].content"):
        llm.chat([{"role": "user", "content": [{"type": "nonsense"}]}])
    with pytest.raises(ValueError, match="expected one of json, regex, choice, grammar, json_object, found json and regex"):
        GuidedDecodingParams(json="{}", regex="a")
    with pytest.raises(ValueError, match="regex: "):
        llm.generate(PROMPT, SamplingParams(guided_decoding=GuidedDecodingParams(regex="(")))
    with pytest.raises(ValueError, match="truncate_prompt_tokens: expected a whole number of at least 1, found 0"):
        SamplingParams(truncate_prompt_tokens=0)
    with pytest.raises(ValueError, match="prompt"):
        llm.generate({"text": PROMPT})


def test_arguments_of_others_get_one_line(caplog):
    with caplog.at_level(logging.WARNING, "outrider"):
        config = NGramDecodingConfig(max_draft_len=3, max_matching_ngram_size=4, is_public_pool=True)
        with LLM(MODELS / "outrider-small", speculative_config=config, disable_overlap_scheduler=True, max_batch_size=4,
                 kv_cache_config=KvCacheConfig(free_gpu_memory_fraction=0.8, dtype="float16")) as llm:
            assert llm.info["kv_cache_type"] == "f16" and llm.info["drafter"] == "NGram"
    lines = [record.message for record in caplog.records]
    assert len(lines) == 2 and all("has no effect here" in line and "\n" not in line for line in lines)


def test_options_of_the_server_get_one_line(caplog):
    with caplog.at_level(logging.WARNING, "outrider"):
        LLM("builtin", port=8000).shutdown()
    assert [record.message for record in caplog.records] == [
        "options: port has no effect here: it is for `outrider serve`"]


def test_vllm_configuration():
    config = {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 3, "policy": "fixed"}
    with LLM("builtin", speculative_config=config, max_model_len=256, max_num_seqs=2) as llm:
        assert llm.info["context"] == 256
        output = llm.generate(PROMPT, SamplingParams(max_tokens=16))
        assert output.speculation.method == "NGram" and output.speculation.drafted > 0


def test_chat_is_that_of_the_program(llm, run_program):
    expected = run_program("generate", "builtin", "--system", "Be brief.", "-p", "Hello", "--max-tokens", "8")
    messages = [{"role": "system", "content": "Be brief."},
                {"role": "user", "content": [{"type": "text", "text": "Hello"}]}]
    several = llm.chat([messages, messages[1:]], SamplingParams(max_tokens=8))
    assert several[0].prompt_token_ids == expected["prompt_token_ids"]
    assert several[0].outputs[0].token_ids == expected["token_ids"]
    assert llm.chat(messages, SamplingParams(max_tokens=8)).outputs[0].text == expected["text"]


TOOL = {"type": "function", "function": {"name": "look", "description": "Looks around.",
                                         "parameters": {"type": "object", "properties": {}}}}


def test_chats_with_tools_and_templates(llm):
    call = {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    messages = [{"role": "user", "content": "Look! <|im_end|>"}, {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "1", "content": "a red ball"}]
    prompt = llm.chat_prompt(messages, tools=[TOOL])
    assert "Looks around." in prompt["prompt"] and "a red ball" in prompt["prompt"]
    (control,) = llm.tokenizer.encode("<|im_end|>", add_special_tokens=False)
    assert llm.tokenizer.decode(prompt["prompt_token_ids"], False) == prompt["prompt"]
    turns = prompt["prompt"].count("<|im_end|>") - 1  # the user's content is text
    assert prompt["prompt_token_ids"].count(control) == turns
    source = "{% for m in messages %}{{ m.role }}={{ m.content }};{% endfor %}{{ mood }}"
    own = llm.chat_prompt(messages[:1], chat_template=source, chat_template_kwargs={"mood": "glad"})
    assert own["prompt"] == "user=Look! <|im_end|>;glad"
    begun = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Once upon"}]
    assert llm.chat_prompt(begun, continue_final_message=True)["prompt"].endswith("Once upon")
    assert llm.chat(messages, SamplingParams(max_tokens=4), tools=[TOOL]).outputs[0].token_ids


@pytest.mark.parametrize("method", ["none", "draft_target"])
def test_guided_decoding(method):
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1, "maximum": 99}}, "required": ["n"],
              "additionalProperties": False}
    with LLM("builtin", speculative_config=method) as llm:
        def text(**form):
            params = SamplingParams(max_tokens=64, temperature=1.0, seed=3, guided_decoding=GuidedDecodingParams(**form))
            return llm.generate(PROMPT, params).outputs[0].text

        assert 1 <= json.loads(text(json=schema))["n"] <= 99
        assert text(json=json.dumps(schema)) == text(json=schema)
        assert re.fullmatch("[a-c]{3}", text(regex="[a-c]{3}"))
        assert text(choice=["red", "blue"]) in ("red", "blue")
        assert text(grammar='root ::= "x" [0-9]')[0] == "x"
        assert text(json_object=True)[0] == "{"
        both = SamplingParams(max_tokens=8, structured_outputs=StructuredOutputsParams(choice=["yes"]), n=2)
        assert [output.text for output in llm.generate(PROMPT, both).outputs] == ["yes", "yes"]


def test_prompts_may_be_cut_and_tokens_forbidden(llm):
    ids = llm.tokenizer.encode(PROMPT)
    cut = llm.generate(PROMPT, SamplingParams(max_tokens=8, truncate_prompt_tokens=3))
    assert cut.prompt_token_ids == ids[-3:]
    first = llm.generate(PROMPT, SamplingParams(max_tokens=8)).outputs[0].token_ids[0]
    forbidden = SamplingParams(max_tokens=8, bad_token_ids=[first])
    assert first not in llm.generate(PROMPT, forbidden).outputs[0].token_ids
    plain = llm.generate(PROMPT, SamplingParams(max_tokens=1, add_special_tokens=False))
    assert plain.prompt_token_ids == llm.tokenizer.encode(PROMPT, add_special_tokens=False)


def test_traces_and_notebook_display():
    with LLM("builtin", speculative_config="draft_target,policy=fixed") as llm:
        traced = llm.generate("Once upon a time <b>", SamplingParams(max_tokens=24), trace=True)
        plain = llm.generate("Once upon a time <b>", SamplingParams(max_tokens=24))
    output = traced.outputs[0]
    assert output.token_ids == plain.outputs[0].token_ids and plain.outputs[0].steps == []
    accepted = sum(node.fate == "accepted" for step in output.steps for node in step.nodes[1:])
    assert accepted == output.speculation.accepted == output.origins.count("accepted") > 0
    assert sum((step.token_ids for step in output.steps), []) == output.token_ids
    shown = traced._repr_html_()
    assert "&lt;b&gt;" in shown and "<details>" in shown and "✓" in shown
    assert "tokens per pass" in plain._repr_html_() and "<details>" not in plain._repr_html_()


def test_pieces_join_to_the_text(llm):
    from outrider.display import pieces

    for prompt in (PROMPT, "Once upon a time"):
        output = llm.generate(prompt, SamplingParams(max_tokens=32, temperature=1.5, seed=1)).outputs[0]
        assert "".join(text for text, _ in pieces(output, llm.tokenizer._native)) == output.text


def test_tokenizer(llm):
    ids = llm.tokenizer.encode("Once upon a time", add_special_tokens=False)
    assert llm.tokenizer.decode(ids) == "Once upon a time"
    assert max(ids) < llm.tokenizer.vocab_size == llm.info["vocab_size"]


def test_the_default_model_is_the_programs(run_program):
    with LLM() as llm:
        expected = run_program("generate", "-p", PROMPT, "--max-tokens", "8")
        assert llm.generate(PROMPT, SamplingParams(max_tokens=8)).outputs[0].token_ids == expected["token_ids"]


def run_python(code: str, **options) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, cwd=ROOT / "python" / "tests", **options)


def test_ctrl_c_ends_a_long_answer():
    # A shell starts its background programs with this signal ignored.
    child = run_python("""
        import signal
        from outrider import LLM, SamplingParams
        signal.signal(signal.SIGINT, signal.default_int_handler)
        llm = LLM("builtin")
        print("ready", flush=True)
        try:
            llm.generate(["one two"] * 200, SamplingParams(max_tokens=400, ignore_eos=True))
        except KeyboardInterrupt:
            print("interrupted", llm.generate("one two", SamplingParams(max_tokens=4)).outputs[0].token_ids)
        """)
    assert child.stdout.readline() == "ready\n"
    time.sleep(0.5)
    child.send_signal(signal.SIGINT)
    output, errors = child.communicate(timeout=20)
    assert output.startswith("interrupted [") and child.returncode == 0, errors


def test_a_program_may_end_at_any_time():
    child = run_python("""
        from outrider import LLM, SamplingParams
        llm = LLM("builtin")
        output = llm.generate_async("one two", SamplingParams(max_tokens=400, ignore_eos=True))
        next(iter(output))
        """)
    _, errors = child.communicate(timeout=20)
    assert child.returncode == 0 and errors == ""


def test_many_engines_and_shutdown():
    for _ in range(3):
        llm = LLM("builtin")
        output = llm.generate(PROMPT, SamplingParams(max_tokens=4))
        del llm
    assert output._repr_html_()
    llm = LLM("builtin")
    unfinished = llm.generate_async(PROMPT, SamplingParams(max_tokens=400, ignore_eos=True))
    llm.shutdown()
    llm.shutdown()
    with pytest.raises(RuntimeError, match="shut down before the answer ended"):
        unfinished.result()
    with pytest.raises(RuntimeError, match="shut down"):
        llm.generate(PROMPT)


def test_the_program_is_in_the_wheel():
    done = subprocess.run([sys.executable, "-m", "outrider", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0] == f"outrider {outrider.__version__}"


def test_the_default_models_head_is_in_the_wheel():
    assert (PROGRAM.parent.parent / "share/outrider/models/smollm2-135m-eagle3/model.safetensors").is_file()
