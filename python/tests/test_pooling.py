# SPDX-License-Identifier: Apache-2.0
"""Embeddings and scores by vLLM's names."""

import json
import math
import socket
import subprocess
import time
import urllib.error
import urllib.request

import numpy
import pytest
from conftest import PROMPT
from outrider import PoolingParams
from outrider._program import PROGRAM

TEXTS = [PROMPT, "Once upon a time"]


@pytest.fixture(scope="module")
def served():
    """The embeddings of the program's server, by --pooling."""

    def embeddings(pooling: str) -> list:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        server = subprocess.Popen([PROGRAM, "serve", "builtin", "--port", str(port), "--pooling", pooling,
                                   "--speculative", "none"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            return json.load(_answer(port))["data"]
        finally:
            server.terminate()
            server.wait(timeout=30)

    return embeddings


def _answer(port: int):
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/embeddings", json.dumps({"input": TEXTS}).encode(),
                                     {"Content-Type": "application/json"})
    for _ in range(300):
        try:
            return urllib.request.urlopen(request, timeout=30)
        except ConnectionError:
            time.sleep(0.1)
        except urllib.error.URLError:
            time.sleep(0.1)
    raise TimeoutError("the server did not come up")


@pytest.mark.parametrize("pooling", ["last", "mean"])
def test_embeddings_are_the_servers(llm, served, pooling):
    found = llm.embed(TEXTS, pooling_params=PoolingParams(pooling=pooling))
    for one, expected in zip(found, served(pooling)):
        assert numpy.allclose(one.outputs.embedding, expected["embedding"], atol=1e-6)
        assert one.finished and one.prompt_token_ids and one.outputs.hidden_size == len(expected["embedding"])


def test_encode_gives_arrays(llm):
    (one,) = llm.encode(PROMPT)
    assert one.outputs.data.dtype == numpy.float32
    assert float(numpy.linalg.norm(one.outputs.data)) == pytest.approx(1, abs=1e-5)
    (raw,) = llm.encode([PROMPT], PoolingParams(normalize=False))
    assert float(numpy.linalg.norm(raw.outputs.data)) != pytest.approx(1, abs=1e-3)
    (short,) = llm.encode(PROMPT, PoolingParams(dimensions=8))
    assert short.outputs.data.shape == (8,) and float(numpy.linalg.norm(short.outputs.data)) == pytest.approx(1, abs=1e-5)
    with pytest.raises(ValueError, match="pooling_task: expected 'embed', found 'classify'"):
        llm.encode(PROMPT, pooling_task="classify")
    with pytest.raises(ValueError, match=f"dimensions: expected at most {len(one.outputs.data)}, found 100000"):
        llm.encode(PROMPT, PoolingParams(dimensions=100000))


def test_scores_are_cosines(llm):
    same, other = llm.score(PROMPT, TEXTS)
    assert same.outputs.score == pytest.approx(1, abs=1e-5)
    first, second = (numpy.array(one.outputs.embedding) for one in llm.embed(TEXTS))
    assert other.outputs.score == pytest.approx(float(first @ second), abs=1e-5)
    pairs = llm.score(TEXTS, TEXTS[::-1])
    assert [one.outputs.score for one in pairs] == pytest.approx([other.outputs.score] * 2, abs=1e-5)
    with pytest.raises(ValueError, match="expected one text or 1 in data_1, as in data_2, found 2"):
        llm.score(TEXTS, [PROMPT])


def test_rerankers_say_yes_or_no(llm):
    try:
        scores = [one.outputs.score for one in llm.score("a query", ["a document", "another"], rank=True)]
    except ValueError as error:  # the vocabulary of the built-in model need not have the words
        assert 'no single token for "' in str(error)
    else:
        assert all(0 <= score <= 1 and math.isfinite(score) for score in scores)


def test_get_tokenizer_is_the_models(llm):
    assert llm.get_tokenizer() is llm.tokenizer
    assert llm.get_tokenizer().decode(llm.get_tokenizer().encode("Once upon a time")) == "Once upon a time"
