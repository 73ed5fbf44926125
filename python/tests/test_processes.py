# SPDX-License-Identifier: Apache-2.0
"""Fork, spawn and pickle of every public object."""

import copy
import multiprocessing
import os
import pickle
import signal
import time

import outrider
import pytest
from conftest import PROMPT
from outrider import LLM, SamplingParams

SECONDS = 60  # a child that takes longer hangs


def in_fork(work):
    """Runs work() in a forked process, which ends as a Python program does, and gives its exit status."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        except BaseException as error:  # the parent shows it by the status
            print(f"{type(error).__name__}: {error}", flush=True)
        finally:
            import atexit

            atexit._run_exitfuncs()
            os._exit(status)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "hangs"


def test_an_llm_raises_after_a_fork(llm):
    running = llm.generate_async(PROMPT, SamplingParams(max_tokens=300, ignore_eos=True))

    def child():
        calls = [lambda: llm.generate(PROMPT), lambda: llm.chat([{"role": "user", "content": "Hi"}]), llm.status,
                 lambda: llm.embed(PROMPT), lambda: running.result(timeout=5), lambda: next(iter(running)), running.abort]
        for call in calls:
            with pytest.raises(RuntimeError, match="forked from it; open an LLM after the fork"):
                call()
        assert llm.tokenizer.decode(llm.tokenizer.encode(PROMPT)) and llm.info["family"]
        llm.shutdown()

    assert in_fork(child) == 0
    assert running.result().outputs[0].finish_reason == "length"


def test_a_fork_may_drop_an_llm_and_open_its_own():
    with LLM("builtin", speculative_config="none") as llm:
        expected = llm.generate(PROMPT, SamplingParams(max_tokens=4)).outputs[0].token_ids
        holder = [llm]
        del llm

        def child():
            holder.clear()
            with LLM("builtin", speculative_config="none") as own:
                assert own.generate(PROMPT, SamplingParams(max_tokens=4)).outputs[0].token_ids == expected

        assert in_fork(child) == 0


def test_a_fork_drops_a_drafter():
    class Nothing(outrider.Drafter):
        def prepare_draft_tokens(self, scheduled_requests, resource_manager=None):
            pass

    config = outrider.UserProvidedDecodingConfig(drafter=Nothing())
    holder = [LLM("builtin", speculative_config=config)]
    assert in_fork(holder.clear) == 0
    holder[0].shutdown()


def answer_in_child(params, sent, queue):
    with LLM("builtin", speculative_config="none") as own:
        output = own.generate(PROMPT, params)
    queue.put((output, sent))


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_other_processes_send_results(llm, method):
    params = SamplingParams(max_tokens=4, logprobs=1)
    here = llm.generate(PROMPT, params)
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    child = context.Process(target=answer_in_child, args=(params, here, queue))
    child.start()
    there, back = queue.get(timeout=SECONDS)
    child.join(SECONDS)
    assert child.exitcode == 0
    assert there.outputs[0].token_ids == back.outputs[0].token_ids == here.outputs[0].token_ids
    assert (there.outputs[0].logprobs == here.outputs[0].logprobs).all()


class OwnDrafter(outrider.Drafter):
    def prepare_draft_tokens(self, scheduled_requests, resource_manager=None):
        pass


NODE = outrider.Node(1, -1, 1.0, None, 0, "accepted", "")
STATISTICS = outrider.SpeculationStats("none", True, 1, 0, 0, 0, 1, [], [], 0, 0.0, 0.0)
# How to make each public object. The results of an LLM are below.
MAKERS = {
    "AutoDecodingConfig": lambda: outrider.AutoDecodingConfig(),
    "BaseResourceManager": outrider.BaseResourceManager, "ResourceManager": outrider.ResourceManager,
    "CompletionOutput": lambda: outrider.CompletionOutput(0, text="a"),
    "CudaGraphConfig": outrider.CudaGraphConfig, "TorchCompileConfig": outrider.TorchCompileConfig,
    "MoeConfig": outrider.MoeConfig, "SchedulerConfig": outrider.SchedulerConfig,
    "DecodingConfig": lambda: outrider.DecodingConfig(decoding_type="NGram", max_draft_len=3),
    "DFlashDecodingConfig": lambda: outrider.DFlashDecodingConfig(speculative_model="head"),
    "Drafter": OwnDrafter,
    "DraftTargetDecodingConfig": lambda: outrider.DraftTargetDecodingConfig(speculative_model="draft"),
    "DSparkDecodingConfig": lambda: outrider.DSparkDecodingConfig(speculative_model="head"),
    "Eagle3DecodingConfig": lambda: outrider.Eagle3DecodingConfig(speculative_model="head", max_draft_len=3),
    "EagleDecodingConfig": lambda: outrider.EagleDecodingConfig(speculative_model="head"),
    "EmbeddingOutput": lambda: outrider.EmbeddingOutput([1.0]),
    "EmbeddingRequestOutput": lambda: outrider.EmbeddingRequestOutput(1, outrider.EmbeddingOutput([1.0]), [1]),
    "GuidedDecodingParams": lambda: outrider.GuidedDecodingParams(regex="a"),
    "StructuredOutputsParams": lambda: outrider.StructuredOutputsParams(choice=["a"]),
    "KvCacheConfig": lambda: outrider.KvCacheConfig(dtype="float16"),
    "LlmRequest": lambda: outrider.LlmRequest(1),
    "LookaheadDecodingConfig": lambda: outrider.LookaheadDecodingConfig(max_window_size=4),
    "MedusaDecodingConfig": lambda: outrider.MedusaDecodingConfig(speculative_model="heads"),
    "MTPDecodingConfig": lambda: outrider.MTPDecodingConfig(max_draft_len=2),
    "NGramDecodingConfig": lambda: outrider.NGramDecodingConfig(max_draft_len=2),
    "Node": lambda: NODE,
    "PARDDecodingConfig": lambda: outrider.PARDDecodingConfig(speculative_model="draft"),
    "PooledOutput": lambda: outrider.PooledOutput(1, outrider.ScoringOutput(0.5), [1]),
    "PoolingOutput": lambda: outrider.PoolingOutput([1.0]),
    "PoolingParams": lambda: outrider.PoolingParams(pooling="mean"),
    "PoolingRequestOutput": lambda: outrider.PoolingRequestOutput(1, outrider.PoolingOutput([1.0]), [1]),
    "RequestOutput": lambda: outrider.RequestOutput("a", [1], 0, None),
    "SADecodingConfig": outrider.SADecodingConfig,
    "SamplingParams": lambda: SamplingParams(temperature=0.5, stop=["a"]),
    "ScheduledRequests": lambda: outrider.ScheduledRequests([outrider.LlmRequest(1)]),
    "ScoringOutput": lambda: outrider.ScoringOutput(0.5),
    "ScoringRequestOutput": lambda: outrider.ScoringRequestOutput(1, outrider.ScoringOutput(0.5), [1]),
    "SpeculationStats": lambda: STATISTICS,
    "Step": lambda: outrider.Step(0, 1, 1, 0.0, 0.0, 0.0, False, False, [NODE], [1], ["plain"], [1.0]),
    "UserProvidedDecodingConfig": lambda: outrider.UserProvidedDecodingConfig(drafter=OwnDrafter(), max_draft_len=2),
    "__version__": lambda: outrider.__version__,
    "pull": lambda: outrider.pull,
}
REFUSED = {"LLM", "Tokenizer"}


def state_of(made):
    """The members of an object, as text."""
    slots = [getattr(made, name) for name in getattr(type(made), "__slots__", ())]
    held = dict(getattr(made, "__dict__", {}))
    for name in ("_came", "_abort", "_updates"):
        held.pop(name, None)
    plain = {name: value if isinstance(value, (str, int, float, list, dict, tuple)) else type(value).__name__
             for name, value in held.items()}
    return type(made).__name__, repr([type(slot).__name__ for slot in slots]), repr(plain) if held else repr(type(made))


def test_every_public_name_has_a_case():
    assert set(outrider.__all__) == set(MAKERS) | REFUSED


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_public_objects_pickle(name):
    made = MAKERS[name]()
    for again in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
        assert type(again) is type(made)
        if name not in ("ScheduledRequests",):
            assert state_of(again) == state_of(made)


def test_results_pickle_with_their_display():
    with LLM("builtin", speculative_config="draft_target,policy=fixed") as llm:
        output = llm.generate(PROMPT, SamplingParams(max_tokens=16, logprobs=2), trace=True)
        shown = output._repr_html_()
    again = pickle.loads(pickle.dumps(output))
    assert again._repr_html_() == shown and "✓" in shown
    assert again.finished and again.result() is again and next(iter(again)) is again
    assert again.outputs[0].steps == output.outputs[0].steps
    assert pickle.loads(pickle.dumps(again))._repr_html_() == shown
    assert pickle.loads(pickle.dumps(output.outputs[0].steps[-1]))._repr_html_() == output.outputs[0].steps[-1]._repr_html_()


def test_what_cannot_be_pickled_says_so(llm):
    with pytest.raises(TypeError, match="cannot pickle an LLM: .* open one in the other process"):
        pickle.dumps(llm)
    with pytest.raises(TypeError, match="cannot pickle a Tokenizer"):
        pickle.dumps(llm.get_tokenizer())
    running = llm.generate_async(PROMPT, SamplingParams(max_tokens=300, ignore_eos=True))
    with pytest.raises(TypeError, match="not finished"):
        pickle.dumps(running)
    running.abort()
    running.result()
