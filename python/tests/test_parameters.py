# SPDX-License-Identifier: Apache-2.0
"""Parameters are checked when they are made, by the rows of the option table."""

import subprocess

import pytest
from outrider import (DecodingConfig, Eagle3DecodingConfig, KvCacheConfig, NGramDecodingConfig, PoolingParams,
                      SamplingParams)
from outrider._program import PROGRAM

# A value outside the range of each number, and a value of another kind.
OUTSIDE = {"temperature": -0.5, "top_p": 2, "min_p": -1, "top_k": -2, "max_tokens": 0, "min_tokens": -1,
           "repetition_penalty": 0, "presence_penalty": 1001, "frequency_penalty": -1001, "logprobs": 21,
           "prompt_logprobs": 21, "max_draft_tokens": -1, "max_draft_len": 65, "max_children": -1, "seed": -1,
           "policy": "sometimes", "truncate_prompt_tokens": 0, "n": 0}


@pytest.mark.parametrize("name", sorted(OUTSIDE))
def test_values_out_of_range_raise_when_made(name):
    with pytest.raises(ValueError, match=f"^{name}: expected .*, found '?{OUTSIDE[name]}"):
        SamplingParams(**{name: OUTSIDE[name]})


@pytest.mark.parametrize("name", ["temperature", "top_p", "max_tokens", "seed"])
def test_other_kinds_raise_when_made(name):
    with pytest.raises(ValueError, match=f"^{name}: expected .*, found 'much'"):
        SamplingParams(**{name: "much"})
    with pytest.raises(ValueError, match=f"^{name}: "):
        SamplingParams(**{name: float("nan")})


def test_lists_of_tokens_raise_when_made():
    with pytest.raises(ValueError, match="stop_token_ids"):
        SamplingParams(stop_token_ids=[-1])
    with pytest.raises(TypeError, match="integer"):
        SamplingParams(allowed_token_ids=[1.5])


@pytest.mark.parametrize("name", ["temperature", "top_p", "max_tokens", "repetition_penalty"])
def test_the_command_line_has_the_same_ranges(name):
    with pytest.raises(ValueError) as here:
        SamplingParams(**{name: OUTSIDE[name]})
    option = "--" + name.replace("_", "-")
    done = subprocess.run([PROGRAM, "generate", "builtin", "-p", "a", f"{option}={OUTSIDE[name]}"], capture_output=True,
                          text=True, check=False)
    assert done.returncode != 0 and str(here.value).split(": ", 1)[1] in done.stderr


def test_configurations_raise_when_made():
    with pytest.raises(ValueError, match="max_draft_len: expected .*0 to 64, found '?65"):
        NGramDecodingConfig(max_draft_len=65)
    with pytest.raises(ValueError, match="max_matching_ngram"):
        NGramDecodingConfig(max_draft_len=2, max_matching_ngram=3)
    with pytest.raises(ValueError, match="decoding_type|method"):
        DecodingConfig(decoding_type="NoSuch")
    with pytest.raises(ValueError, match="kv_cache_config.dtype"):
        KvCacheConfig(dtype="int1")
    assert Eagle3DecodingConfig(max_draft_len=3, speculative_model="nowhere").max_draft_len == 3  # files are read later


def test_pooling_parameters_raise_when_made():
    with pytest.raises(ValueError, match="pooling: expected last or mean, found 'first'"):
        PoolingParams(pooling="first")
    with pytest.raises(ValueError, match="dimensions: expected a whole number of at least 1, found 0"):
        PoolingParams(dimensions=0)
