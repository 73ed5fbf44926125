# SPDX-License-Identifier: Apache-2.0
"""Drafters in Python, by the names of TensorRT-LLM."""

import abc
import logging
import threading
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Tuple

from outrider._process import OfProcess
from outrider.configs import UserProvidedDecodingConfig
from outrider.lib import _engine

if TYPE_CHECKING:
    import numpy

log = logging.getLogger("outrider")


class LlmRequest:
    """One request as a drafter sees it.

    Attributes:
        request_id: number of the request.
        tokens: prompt and output; the last token is the one that drafts continue. Do not change it.
        py_draft_tokens: to be set by the drafter: the tokens that it proposes, one after the other.
        py_draft_parents: may be set beside it, for a tree: for each drafted token the number of the token that it
            continues, counted from 1 in py_draft_tokens; 0 is the last token of `tokens`. None: a chain.
        py_draft_probabilities: may be set beside it: the drafter's guess that a token is accepted if its parent is.
        py_orig_prompt_len: tokens of the prompt.
        py_num_accepted_draft_tokens: tokens of the last draft that were accepted.
        max_draft_len: levels of the draft; deeper tokens are cut.
        max_total_draft_tokens: tokens of the draft; further ones are cut.
        new_features: the model's states of the tokens that were computed since the last call, as the drafter wants
            them: a numpy array, float32 [tokens, states, hidden size]; None if it wants none. All tokens but the last
            have states.
        features_begin: number of the first token that `new_features` has.
    """

    __slots__ = ("request_id", "tokens", "py_draft_tokens", "py_draft_parents", "py_draft_probabilities",
                 "py_orig_prompt_len", "py_num_accepted_draft_tokens", "max_draft_len", "max_total_draft_tokens",
                 "new_features", "features_begin")

    def __init__(self, request_id: int) -> None:
        self.request_id = request_id
        self.tokens: List[int] = []
        self.py_draft_tokens: Optional[Sequence[int]] = None
        self.py_draft_parents: Optional[Sequence[int]] = None
        self.py_draft_probabilities: Optional[Sequence[float]] = None
        self.py_orig_prompt_len = 0
        self.py_num_accepted_draft_tokens = 0
        self.max_draft_len = 0
        self.max_total_draft_tokens = 0
        self.new_features: "Optional[numpy.ndarray]" = None
        self.features_begin = 0

    def get_tokens(self, beam: Optional[int] = None) -> Any:
        """All tokens; without an argument in a list for the only beam."""
        return [self.tokens] if beam is None else self.tokens

    @property
    def py_request_id(self) -> int:
        return self.request_id

    def _answer(self) -> Tuple[List[int], Sequence[int], Sequence[float]]:
        tokens = [int(token) for token in self.py_draft_tokens or ()]
        return tokens, self.py_draft_parents or (), self.py_draft_probabilities or ()


class ScheduledRequests:
    """The requests that want a draft in this step."""

    __slots__ = ("generation_requests",)

    def __init__(self, requests: List[LlmRequest]) -> None:
        self.generation_requests = requests

    @property
    def context_requests(self) -> List[LlmRequest]:
        """Requests with a prompt that is being computed: they want no draft, so there are none here."""
        return []

    @property
    def batch_size(self) -> int:
        return len(self.generation_requests)

    def all_requests(self) -> List[LlmRequest]:
        return self.generation_requests


class BaseResourceManager:
    """State of a drafter that follows the requests. All methods may be left out."""

    def prepare_resources(self, scheduled_requests: ScheduledRequests) -> None:
        """Called in each step before the drafter."""

    def update_resources(self, scheduled_requests: ScheduledRequests) -> None:
        """Called when the outcome of the step before is known: tokens and py_num_accepted_draft_tokens are new."""

    def free_resources(self, request: LlmRequest) -> None:
        """The request has ended. Called with the next step, or when the LLM is shut down."""


class Drafter(abc.ABC):
    """Proposes tokens. It cannot change the output: if it raises, is slow or returns nonsense, only speed is lost.

    It runs on another thread and is used by one LLM.

    A drafter that wants the model's states sets these attributes, of its class or of itself, before the LLM is opened.
    It gets the states as `new_features` of its requests. Prompts are then computed whole, even where the cache has
    them.

    Attributes:
        feature_layers: the residual stream that enters each of these layers (rising, from 0; the number of layers:
            that leaves the last one).
        wants_final_norm: the output of the final norm, after them.
    """

    feature_layers: Sequence[int] = ()
    wants_final_norm: bool = False

    def __init__(self, max_draft_len: Optional[int] = None, max_total_draft_tokens: Optional[int] = None,
                 max_concurrency: Optional[int] = None, draft_len_schedule: Optional[Dict[int, int]] = None) -> None:
        self.max_draft_len = max_draft_len
        self.max_total_draft_tokens = max_total_draft_tokens
        self.max_concurrency = max_concurrency
        self.draft_len_schedule = draft_len_schedule

    @abc.abstractmethod
    def prepare_draft_tokens(self, scheduled_requests: ScheduledRequests, resource_manager: Any = None) -> None:
        """Sets `py_draft_tokens` of each of `scheduled_requests.generation_requests`; called in each step."""


class DrafterThread(OfProcess):
    """Runs a drafter for an engine."""

    def __init__(self, config: UserProvidedDecodingConfig) -> None:
        super().__init__()
        self.native = _engine.Drafter(type(config.drafter).__name__, config.drafter_time_limit,
                                      [int(layer) for layer in getattr(config.drafter, "feature_layers", ())],
                                      bool(getattr(config.drafter, "wants_final_norm", False)))
        self._drafter = config.drafter
        self._manager = config.resource_manager
        self._requests: Dict[int, LlmRequest] = {}
        self._is_failure_logged = False
        self._thread = threading.Thread(target=self._serve, name="outrider drafter", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Waits for the drafter, unless it hangs."""
        self.native.close()
        if not self.native.is_out:
            self._thread.join()
        self._free(list(self._requests))

    def _free(self, ended: List[int]) -> None:
        for number in ended:
            request = self._requests.pop(number, None)
            if request is not None and hasattr(self._manager, "free_resources"):
                self._manager.free_resources(request)

    def _draft(self, items: List[Tuple[Any, ...]], ended: List[int]) -> List[Tuple[Any, ...]]:
        """One call of the drafter."""
        if ended:
            self._free(ended)
        requests = []
        for (number, is_new, tokens, prompt_length, accepted, max_draft_len, max_nodes, features_begin,
             features) in items:
            if is_new:
                self._requests[number] = LlmRequest(number)
            request = self._requests[number]
            request.tokens.extend(tokens)
            request.py_draft_tokens = None
            request.py_draft_parents = None
            request.py_draft_probabilities = None
            request.py_orig_prompt_len = prompt_length
            request.py_num_accepted_draft_tokens = accepted
            request.max_draft_len = max_draft_len
            request.max_total_draft_tokens = max_nodes
            request.new_features = features
            request.features_begin = features_begin
            requests.append(request)
        scheduled = ScheduledRequests(requests)
        if self._manager is not None:
            for step in ("update_resources", "prepare_resources"):
                if hasattr(self._manager, step):
                    getattr(self._manager, step)(scheduled)
        self._drafter.prepare_draft_tokens(scheduled, self._manager)
        return [request._answer() for request in requests]

    def _serve(self) -> None:
        try:
            while (job := self.native.next_job()) is not None:
                try:
                    self._answer(self._draft(*job))
                except TimeoutError as error:
                    if self.native.is_out:
                        return
                    self._fail(error)
                except Exception as error:  # of a user's code
                    self._fail(error)
        except TimeoutError:  # the time limit passed while the answer was given
            pass

    def _answer(self, drafts: List[Tuple[Any, ...]]) -> None:
        try:
            self.native.answer(drafts)
        except TypeError:
            raise TypeError("expected token ids, parents and probabilities of 32 bits, found others") from None

    def _fail(self, error: Exception) -> None:
        self.native.fail(f"the drafter raised {type(error).__name__}: {error}")
        if not self._is_failure_logged:
            self._is_failure_logged = True
            log.warning("the drafter failed, which costs speed only", exc_info=error)
