# SPDX-License-Identifier: Apache-2.0
"""The engine: LLM, by the names of TensorRT-LLM and vLLM."""

import json
import logging
import os
import queue
import sys
import threading
import weakref
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple, Union, overload

from outrider import pooling
from outrider._options import named_options
from outrider._process import OfProcess, check_process
from outrider.configs import DecodingConfig, UserProvidedDecodingConfig
from outrider.drafter import DrafterThread
from outrider.lib import _engine
from outrider.results import RequestOutput
from outrider.sampling import SamplingParams

log = logging.getLogger("outrider")

Prompt = Union[str, Sequence[int], Dict[str, Any]]
Message = Dict[str, Any]


class Tokenizer:
    """The model's tokenizer and chat template. It belongs to its LLM, and cannot be pickled."""

    def __init__(self, engine: Any) -> None:
        self._native = engine.tokenizer
        self._engine = engine

    @property
    def vocab_size(self) -> int:
        return self._native.vocab_size

    @property
    def bos_token_id(self) -> Optional[int]:
        return self._native.bos

    @property
    def eos_token_id(self) -> Optional[int]:
        return self._native.eos

    def encode(self, text: str, add_special_tokens: bool = True, parse_special: bool = True) -> List[int]:
        """Token ids of a text. With parse_special=False the spellings of special tokens are plain text."""
        return self._native.encode(text, add_special_tokens, parse_special)

    def decode(self, token_ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        """The text of tokens."""
        return self._native.decode(list(token_ids), skip_special_tokens)

    def apply_chat_template(self, messages: Sequence[Message], add_generation_prompt: bool = True) -> str:
        """Messages with "role" and "content" as a prompt.

        Raises:
            ValueError: the model has no template, or it refuses the messages.
        """
        body = {"messages": list(messages), "add_generation_prompt": add_generation_prompt}
        return self._engine.chat_prompt(json.dumps(body), "")[0]

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a Tokenizer: it belongs to its LLM; get it from an LLM of the other process")


class _Engine(OfProcess):
    """The thread that owns an engine: it takes commands between steps and hands on what the steps give."""

    def __init__(self, options: List[Tuple[str, str]], drafter: Optional[DrafterThread]) -> None:
        super().__init__()
        self._commands: "queue.SimpleQueue[Optional[Callable[[], Any]]]" = queue.SimpleQueue()
        self._sinks: Dict[int, Callable[[tuple], None]] = {}
        self._is_ending = False
        self._thread = threading.Thread(target=self._run, name="outrider", daemon=True)
        self._thread.start()
        try:
            self.native = self.call(lambda: _engine.Engine.open(options, drafter.native if drafter else None))
        except BaseException:  # Ctrl-C does not wait for a model that is being read
            self._is_ending = True
            self._commands.put(None)
            raise

    def call(self, function: Callable[[], Any]) -> Any:
        """Runs a function on the thread, between two steps."""
        check_process(self.process)
        done = threading.Event()
        outcome: List[Any] = [None, None]

        def command() -> None:
            try:
                outcome[0] = function()
            except BaseException as error:
                outcome[1] = error
            done.set()

        if self._is_ending:
            raise RuntimeError("the LLM is shut down")
        self._commands.put(command)
        done.wait()
        if outcome[1] is not None:
            raise outcome[1]
        return outcome[0]

    def post(self, function: Callable[[], Any]) -> None:
        """As call(), without waiting."""
        check_process(self.process)
        self._commands.put(function)

    def submit(self, prompt: List[int], parameters: list, is_traced: bool, logits_function: Optional[Callable],
               sink: Callable[[tuple], None]) -> int:
        request = self.native.submit(prompt, parameters, is_traced, logits_function)
        self._sinks[request] = sink
        return request

    def end(self) -> None:
        """Ends the thread after its step; answers that are being written end with an error."""
        if not self._is_ending:
            self._is_ending = True
            self._commands.put(None)
            if threading.current_thread() is not self._thread:  # where garbage is collected on it
                self._thread.join()

    def _run(self) -> None:
        error: BaseException = RuntimeError("the LLM was shut down before the answer ended")
        try:
            while not self._is_ending:
                self._take_commands()
                if self._sinks and not self._is_ending:
                    self._step()
        except BaseException as caught:
            error = caught
        self._is_ending = True
        for sink in self._sinks.values():
            sink((error,))

    def _take_commands(self) -> None:
        """Runs all commands that came; without a request in progress it waits for one."""
        is_idle = not self._sinks
        while True:
            try:
                command = self._commands.get(block=is_idle)
            except queue.Empty:
                return
            if command is None:
                return
            command()
            is_idle = False

    def _step(self) -> None:
        for request, *update in self.native.step():
            sink = self._sinks.pop(request) if update[-1] is not None else self._sinks[request]
            sink(tuple(update))


class LLM:
    """A model, ready to answer.

    The arguments are TensorRT-LLM's and vLLM's, and every option of docs/reference/options.md by its name, as in
    `LLM("smollm2", max_batch=4, threads=2)`. Arguments that have no meaning on a CPU are taken with one line in the log
    "outrider", and arguments that would change the output are refused.

    Args:
        model: a Hugging Face directory, a .gguf file, or the name of a model on this machine; None: SmolLM2 or, where
            that is missing, a small built-in model. `outrider.pull(name)` fetches models.
        speculative_config: how to draft: a decoding config, a dictionary as in vLLM
            ({"method": "ngram", "num_speculative_tokens": 4}), a text as for --speculative
            ("none" drafts nothing), or None: as much as pays, with the drafters that are found.
        options: all other options.

    Raises:
        ValueError: an unknown option or value, or files that do not fit; the message says what was expected.
        OSError: a file cannot be read.
        MemoryError: there is not enough memory.
    """

    def __init__(self, model: Union[str, "os.PathLike[str]", None] = None, *,
                 speculative_config: Union[DecodingConfig, Dict[str, Any], str, None] = None, **options: Any) -> None:
        drafter = None
        if isinstance(speculative_config, UserProvidedDecodingConfig):
            drafter = DrafterThread(speculative_config)
        given = {"model": model, "speculative_config": speculative_config, **options}
        try:
            self._engine = _Engine(list(named_options(given)), drafter)
        except BaseException:
            if drafter is not None:
                drafter.close()
            raise
        for warning in self._engine.native.warnings:
            log.warning("%s", warning)
        self.tokenizer = Tokenizer(self._engine.native)
        # This must come before the interpreter ends; its threads would otherwise be cut off within a step.
        self._finalizer = weakref.finalize(self, _shut_down, self._engine, drafter)

    @property
    def info(self) -> Dict[str, Any]:
        """Model, kernels, drafter, sizes and the time of loading in milliseconds."""
        return self._engine.native.info

    def status(self) -> Dict[str, Any]:
        """Requests, pages of the KV cache, and counts since the model was opened."""
        return self._engine.call(self._engine.native.status)

    @overload
    def generate(self, prompts: Prompt, sampling_params: Optional[SamplingParams] = None, *,  # type: ignore[overload-overlap]
                 use_tqdm: bool = True, trace: bool = False) -> RequestOutput: ...

    @overload
    def generate(self, prompts: Sequence[Prompt],
                 sampling_params: Union[SamplingParams, Sequence[SamplingParams], None] = None, *,
                 use_tqdm: bool = True, trace: bool = False) -> List[RequestOutput]: ...

    def generate(self, prompts: Any, sampling_params: Any = None, *, use_tqdm: bool = True,
                 trace: bool = False) -> Union[RequestOutput, List[RequestOutput]]:
        """Continues prompts, in batches.

        Ctrl-C ends the requests and raises KeyboardInterrupt.

        Args:
            prompts: a text, a list of token ids, a dictionary with "prompt" or "prompt_token_ids", or a list of such.
            sampling_params: for all prompts, or one for each.
            use_tqdm: show a progress bar for several prompts, if tqdm is installed and there is a terminal.
            trace: keep the tree of every step in `outputs[i].steps`, which costs a little time.

        Returns:
            A RequestOutput for one prompt, or a list of them in the order of the prompts.

        Raises:
            ValueError: an empty prompt, one that is longer than the context, or parameters out of range.
        """
        is_one = _is_one_prompt(prompts)
        many: List[Prompt] = [prompts] if is_one else list(prompts)
        is_shared = not isinstance(sampling_params, (list, tuple))
        params: List[Any] = [sampling_params] * len(many) if is_shared else list(sampling_params)
        if len(params) != len(many):
            raise ValueError(f"expected sampling_params for each of {len(many)} prompts, found {len(params)}")
        outputs: List[RequestOutput] = []
        try:
            for prompt, own in zip(many, params):
                outputs.append(self.generate_async(prompt, own, trace=trace))
            for output in _with_progress(outputs, use_tqdm):
                output.result()
        except BaseException:
            for output in outputs:
                output.abort()
            raise
        return outputs[0] if is_one else outputs

    def generate_async(self, prompt: Prompt, sampling_params: Optional[SamplingParams] = None, *,
                       streaming: bool = True, trace: bool = False) -> RequestOutput:
        """Begins an answer and returns at once.

        Args:
            prompt, sampling_params, trace: as for generate().
            streaming: has no meaning here: the answer may be followed and waited for in any case.

        Returns:
            A RequestOutput: iterate over it, with `for` or `async for`, wait by `.result()` or `await` it.
        """
        del streaming
        params = sampling_params or SamplingParams()
        text, ids = self._tokens_of(prompt, params)
        parameters = params.parameters(lambda word: self.tokenizer.encode(word, add_special_tokens=False))
        output = RequestOutput(text, ids, params.n, self.tokenizer._native)
        engine = self._engine

        def submit() -> List[int]:
            requests: List[int] = []
            for index in range(params.n):
                own = parameters if params.n == 1 else [*parameters, ("sample_index", [str(index)])]
                sink = lambda update, index=index: output._put(update[0] if len(update) == 1 else (index, *update))
                requests.append(engine.submit(ids, own, trace, params.logits_function(), sink))
            return requests

        requests = engine.call(submit)
        output.request_id = requests[0]
        output._abort = lambda: engine.post(lambda: [engine.native.cancel(number) for number in requests])
        return output

    @overload
    def chat(self, messages: Sequence[Message], sampling_params: Optional[SamplingParams] = None, *,
             use_tqdm: bool = True, trace: bool = False, **prompt: Any) -> RequestOutput: ...

    @overload
    def chat(self, messages: Sequence[Sequence[Message]],
             sampling_params: Union[SamplingParams, Sequence[SamplingParams], None] = None, *,
             use_tqdm: bool = True, trace: bool = False, **prompt: Any) -> List[RequestOutput]: ...

    def chat(self, messages: Any, sampling_params: Any = None, *, use_tqdm: bool = True, trace: bool = False,
             **prompt: Any) -> Union[RequestOutput, List[RequestOutput]]:
        """Answers a conversation, or several, through the model's chat template.

        Args:
            messages: dictionaries as in OpenAI's API, with "role", "content" and "tool_calls", or a list of
                conversations.
            sampling_params, use_tqdm, trace: as for generate().
            prompt: arguments of chat_prompt(), such as tools.

        Raises:
            ValueError: the model has no chat template, or it refuses the messages.
        """
        is_one = isinstance(messages[0], dict)
        prompts: Any = [self.chat_prompt(conversation, **prompt) for conversation in ([messages] if is_one else messages)]
        return self.generate(prompts[0] if is_one else prompts, sampling_params, use_tqdm=use_tqdm, trace=trace)

    def chat_prompt(self, messages: Sequence[Message], add_generation_prompt: bool = True, *,
                    continue_final_message: bool = False, tools: Optional[Sequence[Dict[str, Any]]] = None,
                    chat_template: Optional[str] = None,
                    chat_template_kwargs: Optional[Dict[str, Any]] = None) -> Dict[str, Any]:
        """A conversation as a prompt for generate() and generate_async(). Control tokens in messages are plain text.

        Args:
            messages: dictionaries as in OpenAI's API, with "role", "content" and "tool_calls".
            add_generation_prompt: begin the assistant's answer.
            continue_final_message: the output goes on with the last message, which is the assistant's.
            tools: functions as in OpenAI's API; models with a template that knows none see them as text.
            chat_template: Jinja source in place of the model's.
            chat_template_kwargs: variables of the template, as in {"enable_thinking": False}.
        """
        body = {"messages": list(messages), "continue_final_message": continue_final_message,
                "add_generation_prompt": add_generation_prompt and not continue_final_message,
                "tools": None if tools is None else list(tools), "chat_template_kwargs": chat_template_kwargs}
        text, ids = self._engine.native.chat_prompt(json.dumps(body), chat_template or "")
        return {"prompt": text, "prompt_token_ids": ids}

    def encode(self, prompts: Any, pooling_params: Optional[pooling.PoolingParams] = None, *,
               pooling_task: str = "embed", use_tqdm: bool = True) -> "List[pooling.PooledOutput[pooling.PoolingOutput]]":
        """The states of prompts as vectors, one for each prompt; they say much if the model was trained for that.

        Args:
            prompts, use_tqdm: as for generate().
            pooling_params: how states become a vector; None: the state of the last token, divided by its length.
            pooling_task: "embed", the only one here.

        Returns:
            A list, also for one prompt; `[i].outputs.data` is a numpy array.
        """
        if pooling_task != "embed":
            raise ValueError(f"pooling_task: expected 'embed', found {pooling_task!r}; score() compares texts")
        return pooling.vectors(self, [prompts] if _is_one_prompt(prompts) else prompts, pooling_params, use_tqdm)

    def embed(self, prompts: Any, *, pooling_params: Optional[pooling.PoolingParams] = None,
              use_tqdm: bool = True) -> "List[pooling.PooledOutput[pooling.EmbeddingOutput]]":
        """As encode(); `[i].outputs.embedding` is a list of numbers."""
        found = self.encode(prompts, pooling_params, use_tqdm=use_tqdm)
        return [pooling.PooledOutput(one.request_id, pooling.EmbeddingOutput(one.outputs.data.tolist()),
                                     one.prompt_token_ids) for one in found]

    def score(self, data_1: Any, data_2: Any, *, rank: bool = False,
              pooling_params: Optional[pooling.PoolingParams] = None,
              use_tqdm: bool = True) -> "List[pooling.PooledOutput[pooling.ScoringOutput]]":
        """How well texts fit each other, in `[i].outputs.score`.

        Args:
            data_1: a text, or as many as in data_2.
            data_2: a text or several.
            rank: the model is a reranker, such as Qwen3-Reranker: the score is its probability that the second text
                answers the first. Otherwise it is the cosine of their embeddings.
            pooling_params, use_tqdm: as for encode().
        """
        pairs = pooling.paired(data_1, data_2)
        return pooling.ranks(self, pairs, use_tqdm) if rank else pooling.cosines(self, pairs, pooling_params, use_tqdm)

    def get_tokenizer(self) -> Tokenizer:
        return self.tokenizer

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle an LLM: it has threads and weights; open one in the other process")

    def shutdown(self) -> None:
        """Ends all requests and gives back the memory. The LLM cannot be used after this."""
        self._finalizer()

    def __enter__(self) -> "LLM":
        return self

    def __exit__(self, *_: Any) -> None:
        self.shutdown()

    def _tokens_of(self, prompt: Prompt, params: SamplingParams) -> Tuple[Optional[str], List[int]]:
        """The text of a prompt, if it has one, and its tokens."""
        if isinstance(prompt, str):
            prompt = {"prompt": prompt}
        elif not isinstance(prompt, dict):
            prompt = {"prompt_token_ids": prompt}
        text, ids = prompt.get("prompt"), prompt.get("prompt_token_ids")
        if text is None and ids is None:
            raise ValueError(f"expected 'prompt' or 'prompt_token_ids' in a prompt, found {sorted(prompt)}")
        if ids is None:
            ids = self.tokenizer.encode(str(text), params.add_special_tokens)
        return text, [int(token) for token in ids][-(params.truncate_prompt_tokens or 0):]


def _is_one_prompt(prompts: Any) -> bool:
    if isinstance(prompts, (str, dict)):
        return True
    return len(prompts) > 0 and not isinstance(prompts[0], (str, dict, list, tuple))  # token ids


def _with_progress(outputs: List[RequestOutput], is_wanted: bool) -> Iterable[RequestOutput]:
    """The outputs, with a progress bar where one can be shown. tqdm is no dependency: a bar is all it is for."""
    is_shown = is_wanted and len(outputs) > 1 and (sys.stderr.isatty() or "ipykernel" in sys.modules)
    if not is_shown:
        return outputs
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return outputs
    return tqdm(outputs, desc="prompts")


def _shut_down(engine: _Engine, drafter: Optional[DrafterThread]) -> None:
    if not engine.is_here:  # forked: the threads are in the other process
        return
    engine.end()
    if drafter is not None:
        drafter.close()

