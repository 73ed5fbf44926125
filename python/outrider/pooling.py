# SPDX-License-Identifier: Apache-2.0
"""Embeddings and scores of texts, by the names of vLLM."""

import dataclasses
import json
import math
from typing import TYPE_CHECKING, Any, Callable, Generic, List, Optional, Sequence, Tuple, TypeVar, Union

from outrider.sampling import SamplingParams, check_whole

if TYPE_CHECKING:
    import numpy

    from outrider.llm import LLM
    from outrider.results import RequestOutput

POOLINGS = ("last", "mean")


@dataclasses.dataclass
class PoolingParams:
    """How the states of a text become one vector.

    Args:
        dimensions: only these first numbers, for models that were trained so; None: all.
        normalize: divide the vector by its length.
        pooling: "last", the state of the last token, or "mean", of all tokens.
        truncate_prompt_tokens: only so many last tokens of the text are used.
        add_special_tokens: the text begins and ends as the model's tokenizer has it.
    """

    dimensions: Optional[int] = None
    normalize: bool = True
    pooling: str = "last"
    truncate_prompt_tokens: Optional[int] = None
    add_special_tokens: bool = True

    n = 1  # answers to a prompt, as in SamplingParams

    def __post_init__(self) -> None:
        check_whole("dimensions", self.dimensions)
        check_whole("truncate_prompt_tokens", self.truncate_prompt_tokens)
        if self.pooling not in POOLINGS:
            raise ValueError(f"pooling: expected last or mean, found {self.pooling!r}")

    def parameters(self, encode: Callable[[str], List[int]]) -> List[Tuple[str, List[str]]]:
        """The parameters as the engine reads them."""
        del encode
        return [("max_tokens", ["1"]), ("temperature", ["0"]), ("speculation", ["false"]), ("pooling", [self.pooling])]

    def logits_function(self) -> None:
        """None: no token is chosen by its logits."""

    def vector(self, states: "numpy.ndarray") -> "numpy.ndarray":
        """The vector of pooled states [hidden size]."""
        if self.dimensions is not None and self.dimensions > len(states):
            raise ValueError(f"dimensions: expected at most {len(states)}, found {self.dimensions}")
        vector = states[:self.dimensions]
        length = math.sqrt(float((vector.astype("float64")**2).sum()))
        return (vector / length).astype("float32") if self.normalize and length > 0 else vector


@dataclasses.dataclass
class PoolingOutput:
    """Attributes:
        data: float32 [dimensions].
    """

    data: "numpy.ndarray"


@dataclasses.dataclass
class EmbeddingOutput:
    """Attributes:
        embedding: the vector as a list.
    """

    embedding: List[float]

    @property
    def hidden_size(self) -> int:
        return len(self.embedding)


@dataclasses.dataclass
class ScoringOutput:
    """Attributes:
        score: cosine of two embeddings, or a reranker's probability that the second text answers the first.
    """

    score: float


Output = TypeVar("Output", PoolingOutput, EmbeddingOutput, ScoringOutput)


@dataclasses.dataclass
class PooledOutput(Generic[Output]):
    """The answer about one text, or about a pair of texts.

    Attributes:
        request_id: number of the request.
        outputs: the PoolingOutput of encode(), the EmbeddingOutput of embed() or the ScoringOutput of score().
        prompt_token_ids: the text in tokens.
        finished: True.
    """

    request_id: int
    outputs: Output
    prompt_token_ids: List[int]
    finished: bool = True


def vectors(llm: "LLM", prompts: Any, params: Optional[PoolingParams], use_tqdm: bool) -> "List[PooledOutput[PoolingOutput]]":
    """The vector of each prompt."""
    params = params or PoolingParams()
    done: Any = llm.generate(prompts, params, use_tqdm=use_tqdm)  # type: ignore[call-overload]
    return [_pooled(output, PoolingOutput(params.vector(output.outputs[0].embedding))) for output in done]


def cosines(llm: "LLM", pairs: Sequence[Tuple[Any, Any]], params: Optional[PoolingParams],
            use_tqdm: bool) -> "List[PooledOutput[ScoringOutput]]":
    """The cosine of the embeddings of each pair."""
    params = dataclasses.replace(params or PoolingParams(), normalize=True)
    found = vectors(llm, [text for pair in pairs for text in pair], params, use_tqdm)
    return [PooledOutput(second.request_id, ScoringOutput(float(first.outputs.data @ second.outputs.data)),
                         first.prompt_token_ids + second.prompt_token_ids)
            for first, second in zip(found[::2], found[1::2])]


def ranks(llm: "LLM", pairs: Sequence[Tuple[str, str]], use_tqdm: bool) -> "List[PooledOutput[ScoringOutput]]":
    """The probability of "yes" against "no" when a reranker is asked about each pair."""
    prompts: List[List[int]] = []
    params: List[SamplingParams] = []
    for query, document in pairs:
        ids, *answers = llm._engine.native.rerank_prompt(json.dumps({"query": query, "documents": [document]}))
        for answer in answers:
            prompts.append(ids)
            params.append(SamplingParams(max_tokens=1, logprobs=0, allowed_token_ids=[answer], speculation=False))
    done: Any = llm.generate(prompts, params, use_tqdm=use_tqdm)
    logprobs = [float(output.outputs[0].logprobs[0]) for output in done]
    return [_pooled(output, ScoringOutput(1 / (1 + math.exp(no - yes))))
            for output, yes, no in zip(done[::2], logprobs[::2], logprobs[1::2])]


def paired(first: Union[Any, Sequence[Any]], second: Union[Any, Sequence[Any]]) -> List[Tuple[Any, Any]]:
    """The pairs of score(): one text beside each of several, or several beside as many."""
    firsts, seconds = ([texts] if isinstance(texts, (str, dict)) else list(texts) for texts in (first, second))
    if len(firsts) == 1:
        firsts *= len(seconds)
    if len(firsts) != len(seconds):
        raise ValueError(f"expected one text or {len(seconds)} in data_1, as in data_2, found {len(firsts)}")
    return list(zip(firsts, seconds))


def _pooled(output: "RequestOutput", found: Output) -> "PooledOutput[Output]":
    return PooledOutput(output.request_id, found, output.prompt_token_ids)
