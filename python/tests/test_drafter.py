# SPDX-License-Identifier: Apache-2.0
"""A drafter in Python costs speed, and nothing else."""

import statistics
import time

import numpy
import pytest
from conftest import PROMPT
from outrider import LLM, BaseResourceManager, Drafter, SamplingParams, UserProvidedDecodingConfig


class PromptLookup(Drafter):
    """Proposes what followed the last token before."""

    def prepare_draft_tokens(self, scheduled_requests, resource_manager=None):
        for request in scheduled_requests.generation_requests:
            tokens = request.get_tokens(0)
            places = [i for i in range(len(tokens) - 1) if tokens[i] == tokens[-1]]
            request.py_draft_tokens = tokens[places[-1] + 1:][:request.max_draft_len] if places else []


class Broken(Drafter):
    """Drafts as it is told; keeps the requests that it saw."""

    def __init__(self, work):
        super().__init__(max_draft_len=3)
        self.work = work
        self.calls = 0

    def prepare_draft_tokens(self, scheduled_requests, resource_manager=None):
        self.calls += 1
        for request in scheduled_requests.generation_requests:
            request.py_draft_tokens = self.work()


def raises():
    raise KeyError("nothing here")


def hangs_in_python():
    while True:
        pass


NONSENSE = {"negative": [-5], "far": [2**31 - 1] * 3, "too large": [2**40], "long": list(range(500)), "text": "abc",
            "no list": 7, "nested": [[1], [2]]}


def answer_with(drafter, time_limit=10.0, **params):
    config = UserProvidedDecodingConfig(max_draft_len=3, drafter=drafter, drafter_time_limit=time_limit)
    with LLM("builtin", speculative_config=config) as llm:
        return llm.generate(PROMPT, SamplingParams(max_tokens=24, **params)).outputs[0]


@pytest.mark.parametrize("params", [{}, {"temperature": 0.9, "seed": 5}])
def test_drafts_are_accepted(params, plain_tokens):
    output = answer_with(PromptLookup(), **params)
    assert output.token_ids == plain_tokens(max_tokens=24, **params)
    assert output.speculation.method == "PromptLookup"
    assert output.speculation.drafted > 0 and output.speculation.draft_failures == 0


@pytest.mark.parametrize("answer", NONSENSE.values(), ids=NONSENSE.keys())
def test_nonsense_costs_speed_only(answer, plain_tokens):
    assert answer_with(Broken(lambda: answer)).token_ids == plain_tokens(max_tokens=24)


def test_an_exception_costs_speed_only(plain_tokens, caplog):
    drafter = Broken(raises)
    output = answer_with(drafter)
    assert output.token_ids == plain_tokens(max_tokens=24)
    assert output.speculation.draft_failures == drafter.calls > 1
    assert [record.message for record in caplog.records] == ["the drafter failed, which costs speed only"]


@pytest.mark.parametrize("work", [hangs_in_python, lambda: time.sleep(5)], ids=["in Python", "in a call"])
def test_a_drafter_that_hangs_is_not_asked_again(work, plain_tokens):
    drafter = Broken(work)
    start = time.monotonic()
    output = answer_with(drafter, time_limit=0.3)
    assert output.token_ids == plain_tokens(max_tokens=24)
    assert drafter.calls == 1 and output.speculation.draft_failures == 1
    assert time.monotonic() - start < 4


class Watching(PromptLookup):
    """Keeps the states of all tokens by request."""

    feature_layers = (0, 2)
    wants_final_norm = True

    def __init__(self):
        super().__init__(max_draft_len=3)
        self.tokens, self.states = {}, {}

    def prepare_draft_tokens(self, scheduled_requests, resource_manager=None):
        for request in scheduled_requests.generation_requests:
            known = self.states.setdefault(request.request_id, [])
            assert request.new_features.dtype == numpy.float32
            assert request.features_begin == len(known)
            known.extend(request.new_features)
            assert len(known) == len(request.tokens) - 1
            self.tokens[request.request_id] = list(request.tokens)
        super().prepare_draft_tokens(scheduled_requests, resource_manager)


def watch(prompts, **params):
    """Outputs, and by prompt the tokens and states that the drafter saw."""
    drafter = Watching()
    config = UserProvidedDecodingConfig(max_draft_len=3, drafter=drafter)
    with LLM("builtin", speculative_config=config) as llm:
        outputs = llm.generate(prompts, SamplingParams(max_tokens=24, **params))
    seen = [(drafter.tokens[key], numpy.array(drafter.states[key])) for key in sorted(drafter.tokens)]
    return [output.outputs[0].token_ids for output in outputs], seen


@pytest.mark.parametrize("params", [{}, {"temperature": 0.9, "seed": 5}])
def test_a_drafter_may_read_the_states_of_the_model(params, plain_tokens):
    prompts = [PROMPT, PROMPT + " three"]
    (first, _), seen = watch(prompts, **params)
    assert first == plain_tokens(max_tokens=24, **params)
    for prompt, (tokens, states) in zip(prompts, seen):
        assert states.shape[1] == 3 and states.shape[0] >= len(tokens) - 1
        alone = watch([prompt], **params)[1][0]
        assert alone[0] == tokens and numpy.array_equal(alone[1], states)  # bit for bit
        # The stream that enters the first layer is the token's embedding, whatever comes before it.
        rows = {}
        for token, state in zip(tokens, states):
            assert numpy.array_equal(rows.setdefault(token, state[0]), state[0])
        assert len({row.tobytes() for row in rows.values()}) == len(rows)
        assert not numpy.array_equal(states[:, 0], states[:, 1])
        assert numpy.isfinite(states).all()


def test_layers_that_the_model_has_not_are_refused():
    drafter = Watching()
    drafter.feature_layers = (0, 1000)
    with pytest.raises(ValueError, match="learns from layer 1000 of the target; expected rising layers from 0 to"):
        LLM("builtin", speculative_config=UserProvidedDecodingConfig(drafter=drafter))


class Tree(Drafter):
    """Proposes two tokens for each of two levels."""

    def prepare_draft_tokens(self, scheduled_requests, resource_manager=None):
        for request in scheduled_requests.generation_requests:
            last = request.tokens[-1]
            request.py_draft_tokens = [last, last + 1, last, last + 1]
            request.py_draft_parents = [0, 0, 1, 2]
            request.py_draft_probabilities = [0.5, 0.4, 0.5, 0.5]


def test_a_drafter_may_propose_trees(plain_tokens):
    config = UserProvidedDecodingConfig(drafter=Tree())
    with LLM("builtin", speculative_config=config) as llm:
        output = llm.generate(PROMPT, SamplingParams(max_tokens=24), trace=True).outputs[0]
    assert output.token_ids == plain_tokens(max_tokens=24)
    trees = [step for step in output.steps if len(step.nodes) > 3]
    assert trees and [node.parent for node in trees[0].nodes] == [-1, 0, 0, 1, 2]
    assert trees[0].nodes[2].draft_probability == 0.4


class Manager(BaseResourceManager):
    def __init__(self):
        self.calls = []

    def prepare_resources(self, scheduled_requests):
        self.calls.append("prepare")

    def update_resources(self, scheduled_requests):
        self.calls.append("update")
        self.accepted = [request.py_num_accepted_draft_tokens for request in scheduled_requests.all_requests()]

    def free_resources(self, request):
        self.calls.append(f"free {len(request.tokens) > 0}")


def test_the_resource_manager_follows_the_requests():
    manager, given = Manager(), []

    class Lookup(PromptLookup):
        def prepare_draft_tokens(self, scheduled_requests, resource_manager=None):
            given.append(resource_manager)
            super().prepare_draft_tokens(scheduled_requests)

    config = UserProvidedDecodingConfig(max_draft_len=3, drafter=Lookup(), resource_manager=manager)
    with LLM("builtin", speculative_config=config) as llm:
        llm.generate([PROMPT, PROMPT + " three"], SamplingParams(max_tokens=8))
    assert set(given) == {manager}
    assert manager.calls[:2] == ["update", "prepare"]
    assert manager.calls.count("free True") == 2


def overhead_us() -> float:
    """Microseconds of a call beyond the drafter's own work: the median over steps of draft time less that work."""
    own = []

    class Timed(Drafter):
        def prepare_draft_tokens(self, scheduled_requests, resource_manager=None):
            start = time.perf_counter()
            for request in scheduled_requests.generation_requests:
                request.py_draft_tokens = [request.tokens[-1]] * 3
            own.append(time.perf_counter() - start)

    config = UserProvidedDecodingConfig(max_draft_len=3, drafter=Timed())
    with LLM("builtin", speculative_config=config) as llm:
        params = SamplingParams(max_tokens=256, ignore_eos=True)
        steps = llm.generate(PROMPT, params, trace=True).outputs[0].steps
    drafts = [step.draft_ms * 1000 for step in steps if len(step.nodes) > 1]
    return statistics.median(drafts) - statistics.median(own) * 1e6


def test_a_call_costs_little():
    """Other programs make it longer, never shorter: one round of ten has to be quick."""
    for _ in range(10):
        found = overhead_us()
        print(f"a Python drafter costs {found:.1f} us per step beyond its own work")
        if found < 50:
            return
    raise AssertionError(f"expected at most 50 us per step, found {found:.1f}")
