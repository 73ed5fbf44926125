# SPDX-License-Identifier: Apache-2.0
"""Logits processors in Python: drafts change nothing of what they decide."""

import numpy
import pytest
from conftest import PROMPT
from outrider import LLM, SamplingParams


def shift(token_ids, logits):
    """Forbids a fifth of the tokens, and favours one, by the text so far."""
    assert token_ids.dtype == numpy.int32 and logits.dtype == numpy.float32 and logits.ndim == 1
    key = int(token_ids[-1]) * 31 + len(token_ids)
    logits[key % 5::5] = -numpy.inf
    logits[key % len(logits)] += 2


def shifted(token_ids, logits):
    """The same, as another array."""
    changed = logits.copy()
    shift(token_ids, changed)
    return changed.astype(numpy.float64)


def tokens_of(speculative, processor, **params):
    with LLM("builtin", speculative_config=speculative) as llm:
        output = llm.generate(PROMPT, SamplingParams(max_tokens=24, logits_processor=processor, **params))
    return [one.token_ids for one in output.outputs]


@pytest.mark.parametrize("params", [{}, {"temperature": 0.9, "seed": 5}, {"temperature": 0.9, "n": 3}])
def test_drafts_change_nothing(params):
    plain = tokens_of("none", shift, **params)
    assert plain != tokens_of("none", None, **params)
    for speculative in ("ngram,policy=fixed", "draft_target,policy=fixed", None):
        assert tokens_of(speculative, shift, **params) == plain
        assert tokens_of(speculative, shifted, **params) == plain
    assert tokens_of(None, [shift], **params) == plain


def test_several_work_one_after_the_other():
    def only(token):
        def change(token_ids, logits):
            kept = logits[token]
            logits[:] = -numpy.inf
            logits[token] = kept
        return change

    assert tokens_of(None, [only(40), lambda token_ids, logits: numpy.roll(logits, 1)]) == [[41] * 24]


def test_one_that_fails_ends_its_request(caplog):
    calls = []

    def fails(token_ids, logits):
        calls.append(len(token_ids))
        if len(calls) == 4:
            raise KeyError("nothing here")

    with LLM("builtin") as llm:
        whole = llm.generate(PROMPT, SamplingParams(max_tokens=24)).outputs[0]
        output = llm.generate(PROMPT, SamplingParams(max_tokens=24, logits_processors=[fails])).outputs[0]
        assert output.finish_reason == "error" and output.token_ids == whole.token_ids[:3]
        bad_shape = SamplingParams(max_tokens=24, logits_processor=lambda token_ids, logits: logits[:-1])
        assert llm.generate(PROMPT, bad_shape).outputs[0].finish_reason == "error"
        assert llm.generate(PROMPT, SamplingParams(max_tokens=24)).outputs[0].token_ids == whole.token_ids
    assert [record.message for record in caplog.records] == ["a logits processor failed, which ends its request"] * 2


@pytest.mark.parametrize("processor", [7, "shift", [shift, None]])
def test_what_is_no_function_is_refused(processor):
    with pytest.raises(ValueError, match="logits_processor: expected functions, found"):
        SamplingParams(logits_processor=processor)
