# SPDX-License-Identifier: Apache-2.0
"""Answers, with all that is known about how they were drafted."""

import collections
import dataclasses
import os
import threading
import time
from typing import TYPE_CHECKING, Any, AsyncIterator, Callable, Deque, Dict, Iterable, Iterator, List, NamedTuple, Optional, Union

from outrider._process import check_process

if TYPE_CHECKING:
    import numpy


class _KnownTokens:
    """The tokens of an answer in place of the tokenizer, which cannot be pickled."""

    def __init__(self, tokenizer: Any, token_ids: Iterable[int]) -> None:
        self._bytes = {token: tokenizer.token_bytes(token) for token in token_ids}
        self._controls = {token for token in self._bytes if tokenizer.is_control(token)}

    def token_bytes(self, token: int) -> bytes:
        return self._bytes.get(token, b"")

    def is_control(self, token: int) -> bool:
        return token in self._controls


def _without_tokenizer(state: Dict[str, Any], token_ids: Iterable[int]) -> Dict[str, Any]:
    """The state of a result that can be pickled, and shown after it."""
    tokenizer = state["_tokenizer"]
    return {**state, "_tokenizer": None if tokenizer is None else _KnownTokens(tokenizer, token_ids)}


class Node(NamedTuple):
    """A drafted token; node 0 of a step is the token that was drafted from.

    Attributes:
        token_id: the token.
        parent: number of the node that it continues; -1 for node 0.
        draft_probability: the drafter's guess, 1 where it has none.
        target_probability: the model's; None where the node was not reached.
        sources: bit i is set if the i-th of the drafters that share the tree proposed it.
        fate: "accepted", "rejected", "unreached", "past stop" or "over budget".
        cause: why it was not accepted, as in "lost arg-max"; "" if it was.
    """

    token_id: int
    parent: int
    draft_probability: float
    target_probability: Optional[float]
    sources: int
    fate: str
    cause: str


@dataclasses.dataclass
class Step:
    """One pass of the model for one request.

    Attributes:
        step: number of the step.
        context: tokens before it.
        rows: rows of the pass, of all requests.
        draft_ms, verify_ms, other_ms: times of the step, which the requests of a batch share.
        draft_failed: the drafter failed.
        is_predicted: the tree comes from the request's prediction, and no drafter was asked.
        nodes: the drafted tree with the fate of every node; empty if only a part of the prompt was computed.
        token_ids, origins, probabilities: the tokens that it committed, how they came about, and the model's
            probabilities.
    """

    step: int
    context: int
    rows: int
    draft_ms: float
    verify_ms: float
    other_ms: float
    draft_failed: bool
    is_predicted: bool
    nodes: List[Node]
    token_ids: List[int]
    origins: List[str]
    probabilities: List[float]
    _tokenizer: Any = dataclasses.field(default=None, repr=False, compare=False)

    def _repr_html_(self) -> str:
        from outrider import display

        return display.tree_html(self, self._tokenizer)

    def _tokens(self) -> List[int]:
        return [node.token_id for node in self.nodes] + self.token_ids

    def __getstate__(self) -> Dict[str, Any]:
        return _without_tokenizer(self.__dict__, self._tokens())


@dataclasses.dataclass
class SpeculationStats:
    """Statistics of speculation.

    Attributes:
        method: name of the drafter.
        lossless: the acceptance rule keeps the model's distribution.
        steps: passes of the model that committed output; drafts: passes that verified drafted tokens.
        drafted, accepted, committed: tokens.
        drafted_per_position, accepted_per_position: tokens by depth, from the first drafted one on.
        draft_failures: calls of the drafter that failed.
        draft_ms, verify_ms: milliseconds.
    """

    method: str
    lossless: bool
    steps: int
    drafts: int
    drafted: int
    accepted: int
    committed: int
    drafted_per_position: List[int]
    accepted_per_position: List[int]
    draft_failures: int
    draft_ms: float
    verify_ms: float

    @property
    def acceptance_length(self) -> float:
        """Tokens committed per pass; 1 without speculation."""
        return self.committed / self.steps if self.steps else 0.0

    @property
    def acceptance_rate(self) -> float:
        """Accepted tokens per drafted token."""
        return self.accepted / self.drafted if self.drafted else 0.0


@dataclasses.dataclass
class CompletionOutput:
    """One answer.

    Attributes:
        index: number of the answer among the n to a prompt.
        text: without special tokens, cut before a stop string.
        token_ids: all tokens of the output.
        origins: how each came about: "plain", "accepted", "recovered" or "bonus".
        text_diff, token_ids_diff: what the last update added, while the answer is streamed.
        finish_reason: "stop", "length", "cancelled" or "error"; None while it is written.
        logprobs: natural log-probabilities of the model, float32 [tokens]; None if not asked for. Known at the end.
        top_token_ids, top_logprobs: the likeliest tokens in each place, int32 and float32 [tokens, k].
        prompt_logprobs, prompt_top_token_ids, prompt_top_logprobs: the same of the prompt from its second token on.
        speculation: SpeculationStats; None while it is written.
        metrics: counts of tokens of the prompt and the prediction, and times in milliseconds.
        steps: every step with its tree, if generate() was called with trace=True.
        embedding: the pooled states of the prompt, float32 [hidden size], for PoolingParams.
    """

    index: int
    text: str = ""
    token_ids: List[int] = dataclasses.field(default_factory=list)
    origins: List[str] = dataclasses.field(default_factory=list)
    text_diff: str = ""
    token_ids_diff: List[int] = dataclasses.field(default_factory=list)
    finish_reason: Optional[str] = None
    logprobs: "Optional[numpy.ndarray]" = None
    top_token_ids: "Optional[numpy.ndarray]" = None
    top_logprobs: "Optional[numpy.ndarray]" = None
    prompt_logprobs: "Optional[numpy.ndarray]" = None
    prompt_top_token_ids: "Optional[numpy.ndarray]" = None
    prompt_top_logprobs: "Optional[numpy.ndarray]" = None
    speculation: Optional[SpeculationStats] = None
    metrics: Dict[str, Any] = dataclasses.field(default_factory=dict)
    steps: List[Step] = dataclasses.field(default_factory=list)
    embedding: "Optional[numpy.ndarray]" = None
    _tokenizer: Any = dataclasses.field(default=None, repr=False, compare=False)

    @property
    def cumulative_logprob(self) -> Optional[float]:
        """Sum of `logprobs`."""
        return None if self.logprobs is None else float(self.logprobs.sum())

    def _add(self, text: str, token_ids: List[int], origins: List[str], completion: Optional[Dict[str, Any]]) -> None:
        self.text_diff, self.token_ids_diff = text, token_ids
        self.text += text
        self.token_ids += token_ids
        self.origins += origins
        if completion is None:
            return
        self.text = completion.pop("text")
        self.speculation = SpeculationStats(**completion.pop("speculation"))
        self.steps = [Step(**{**step, "nodes": [Node(*node) for node in step["nodes"]]}, _tokenizer=self._tokenizer)
                      for step in completion.pop("steps")]
        for name, value in completion.items():
            setattr(self, name, value)

    def _repr_html_(self) -> str:
        from outrider import display

        return display.answer_html(self, self._tokenizer)

    def __getstate__(self) -> Dict[str, Any]:
        return _without_tokenizer(self.__dict__, self.token_ids + [token for step in self.steps for token in step._tokens()])


# An update of a request: number of the answer, text, tokens, origins, completion or None; or an error.
Update = Union[tuple, BaseException]


class RequestOutput:
    """The answers to one prompt, finished or being written.

    A request that is being written is followed by `for update in output` or `async for update in output`, which give
    the object itself after each step, or waited for by `output.result()` or `await output`. The output of one prompt
    is also a sequence of one: `output[0]` is the output itself.

    Attributes:
        request_id: number of the request.
        prompt: the text, or None if token ids were given.
        prompt_token_ids: the prompt in tokens.
        outputs: a CompletionOutput for each answer.
    """

    def __init__(self, prompt: Optional[str], prompt_token_ids: List[int], count: int, tokenizer: Any) -> None:
        self.request_id = 0
        self.prompt = prompt
        self.prompt_token_ids = prompt_token_ids
        self.outputs = [CompletionOutput(index, _tokenizer=tokenizer) for index in range(count)]
        self._follow()

    def _follow(self) -> None:
        """Makes what follows the engine, and is not pickled."""
        self._process = os.getpid()
        self._updates: Deque[Update] = collections.deque()
        self._came = threading.Condition()
        self._wake: Optional[Callable[[], Any]] = None  # of an event loop that waits
        self._abort: Callable[[], Any] = lambda: None

    def __getstate__(self) -> Dict[str, Any]:
        if not self.finished:
            raise TypeError("cannot pickle a request that is not finished; wait for its result()")
        return {name: getattr(self, name) for name in ("request_id", "prompt", "prompt_token_ids", "outputs")}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._follow()

    @property
    def finished(self) -> bool:
        """Whether all answers have ended."""
        return all(output.finish_reason is not None for output in self.outputs)

    @property
    def speculation(self) -> Optional[SpeculationStats]:
        """Statistics of the first answer."""
        return self.outputs[0].speculation

    def abort(self) -> None:
        """Ends the request with the next step; what was written so far stays."""
        self._abort()

    def result(self, timeout: Optional[float] = None) -> "RequestOutput":
        """Waits until the request is finished.

        Args:
            timeout: seconds; None: as long as it takes.

        Raises:
            TimeoutError: it is not finished in time; it goes on.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while not self.finished:
            check_process(self._process)
            left = None if end is None else end - time.monotonic()
            with self._came:
                if not self._came.wait_for(lambda: self._updates, left):
                    raise TimeoutError(f"the request is not finished after {timeout} s")
            self._apply()
        return self

    async def aresult(self) -> "RequestOutput":
        """As result(), for an event loop."""
        async for _ in self:
            pass
        return self

    def __await__(self) -> Any:
        return self.aresult().__await__()

    def __iter__(self) -> Iterator["RequestOutput"]:
        if self.finished:
            yield self
        while not self.finished:
            check_process(self._process)
            with self._came:
                self._came.wait_for(lambda: self._updates)
            self._apply()
            yield self

    async def __aiter__(self) -> AsyncIterator["RequestOutput"]:
        import asyncio

        if self.finished:
            yield self
        loop = asyncio.get_running_loop()
        came = asyncio.Event()
        self._wake = lambda: loop.call_soon_threadsafe(came.set)
        while not self.finished:
            check_process(self._process)
            if not self._updates:
                await came.wait()
            came.clear()
            if self._updates:
                self._apply()
                yield self

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> "RequestOutput":
        return (self,)[index]

    def __repr__(self) -> str:
        return f"RequestOutput(request_id={self.request_id}, prompt={self.prompt!r}, outputs={self.outputs!r})"

    def _repr_html_(self) -> str:
        from outrider import display

        return display.request_html(self)

    # Called by the thread of the engine.
    def _put(self, update: Update) -> None:
        with self._came:
            self._updates.append(update)
            self._came.notify_all()
        if self._wake is not None:
            self._wake()

    # Takes all updates that came; updates of one answer are one.
    def _apply(self) -> None:
        diffs: Dict[int, list] = {}
        while self._updates:
            update = self._updates.popleft()
            if isinstance(update, BaseException):
                raise update
            index, *news = update
            self.outputs[index]._add(*news)
            text, tokens = diffs.setdefault(index, ["", []])
            diffs[index] = [text + news[0], tokens + news[1]]
        for index, (text, tokens) in diffs.items():
            self.outputs[index].text_diff, self.outputs[index].token_ids_diff = text, tokens
