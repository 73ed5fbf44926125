# SPDX-License-Identifier: Apache-2.0
"""The wheel gives the tokens of the command line, with every drafter, greedily and sampled."""

import pytest
from conftest import MODELS, PROMPT
from outrider import LLM, SamplingParams

METHODS = ["none", "ngram", "suffix", "lookahead", "early_exit", "draft_target", "spec_infer", "medusa", "eagle3",
           "mtp", "moa", "auto", "combine=[ngram,draft_target]"]
HEADS = ("medusa", "eagle3", "mtp", "moa")  # lie beside the target, which the wheel has without them
SAMPLING = {"greedy": {}, "sampled": {"temperature": 0.8, "top_p": 0.95, "seed": 3}}


@pytest.mark.parametrize("method", METHODS)
def test_tokens_are_those_of_the_program(method, run_program):
    model = str(MODELS / "outrider-small") if method in HEADS else "builtin"
    config = method if method == "auto" else f"{method},policy=fixed"
    with LLM(model, speculative_config=config) as llm:
        for kind, params in SAMPLING.items():
            flags = [text for name, value in params.items() for text in (f"--{name.replace('_', '-')}", str(value))]
            expected = run_program("generate", model, "-p", PROMPT, "--max-tokens", "32", "--speculative", config,
                                   *flags)
            output = llm.generate(PROMPT, SamplingParams(max_tokens=32, **params)).outputs[0]
            assert output.token_ids == expected["token_ids"], kind
            assert output.text == expected["text"]
            assert output.finish_reason == expected["finish_reason"]
        if method not in ("none", "auto", "lookahead"):
            assert output.speculation.drafted > 0
