# SPDX-License-Identifier: Apache-2.0
"""How one request is answered, by the names of TensorRT-LLM and vLLM."""

import dataclasses
import json
import logging
import operator
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

from outrider._options import as_text
from outrider.lib import _engine

if TYPE_CHECKING:
    import numpy

    LogitsProcessor = Callable[[numpy.ndarray, numpy.ndarray], Optional[numpy.ndarray]]

log = logging.getLogger("outrider")

# Arguments of other systems that change nothing here, with the values that they may have.
_WITHOUT_EFFECT: Dict[str, Tuple[Any, ...]] = {
    "pad_id": (),
    "detokenize": (),
    "return_perf_metrics": (),
    "spaces_between_special_tokens": (),
    "use_beam_search": (False,),
    "include_stop_str_in_output": (False,),
    "exclude_input_from_output": (True,),
    "length_penalty": (1.0, None),
    "early_stopping": (False, None),
}
# Names of the engine's parameters that are ours, too.
_PLAIN = ("temperature", "top_p", "min_p", "top_n_sigma", "typical_p", "xtc_probability", "xtc_threshold",
          "dry_multiplier", "dry_base", "dry_allowed_length", "dry_penalty_last_n", "seed", "max_tokens", "min_tokens", "repetition_penalty", "presence_penalty",
          "frequency_penalty", "ignore_eos", "slide", "logprobs", "prompt_logprobs", "skip_special_tokens", "speculation",
          "policy", "max_draft_tokens",
          "max_draft_len", "max_children")


class GuidedDecodingParams:
    """The form that the output must have; exactly one of these. vLLM's StructuredOutputsParams is the same.

    Args:
        json: a JSON schema as text or dictionary, or a class of pydantic.
        regex: a regular expression for the whole output.
        choice: texts, of which the output is one.
        grammar: a grammar in GBNF.
        json_object: True: any JSON object.
    """

    def __init__(self, json: Any = None, regex: Optional[str] = None, choice: Optional[Sequence[str]] = None,
                 grammar: Optional[str] = None, json_object: Optional[bool] = None) -> None:
        if hasattr(json, "model_json_schema"):
            json = json.model_json_schema()
        forms = {"json": json, "regex": regex, "choice": choice and list(choice), "grammar": grammar,
                 "json_object": json_object or None}
        self.forms = {name: form for name, form in forms.items() if form is not None}
        if len(self.forms) != 1:
            found = " and ".join(self.forms) or "none"
            raise ValueError(f"expected one of {', '.join(forms)}, found {found}")

    def __repr__(self) -> str:
        return f"GuidedDecodingParams({', '.join(f'{name}={form!r}' for name, form in self.forms.items())})"


@dataclasses.dataclass(init=False)
class SamplingParams:
    """Sampling parameters, lengths and stops of a request; None leaves the option of the engine.

    Without arguments decoding is greedy and ends after 128 tokens, as on the command line. Values out of range raise
    ValueError here; what depends on the model is checked when a request begins.

    Args:
        temperature: 0 is greedy.
        top_k: keep the k likeliest tokens; 0 or -1: all.
        top_p: keep the smallest set of likeliest tokens that reaches this probability.
        min_p: keep tokens with at least this fraction of the likeliest one's probability.
        top_n_sigma: keep tokens within so many standard deviations of all logits below the largest one.
        typical_p: keep the tokens nearest to the expected information that together reach this probability.
        xtc_probability, xtc_threshold: how often, and from which probability on, the likeliest tokens are left out.
        dry_multiplier, dry_base, dry_allowed_length, dry_penalty_last_n, dry_sequence_breaker: the penalty of
            repetitions (DRY), by the names of llama.cpp; dry_sequence_breaker is a list of texts.
        seed: seed of all randomness; the same seed gives the same text, with and without speculation. Default 0.
        n: answers to a prompt; answer i has sample index i, and so its own randomness.
        max_tokens, min_tokens: tokens of output.
        stop: text, or several, that ends the output and is not part of it.
        stop_token_ids: tokens that end the output, in addition to the model's own.
        bad: texts that may not appear; bad_words is the same.
        allowed_token_ids: the only tokens that may appear.
        bad_token_ids: tokens that may not appear.
        guided_decoding: a GuidedDecodingParams; structured_outputs is the same.
        logit_bias: numbers that are added to logits, by token id; -inf forbids a token.
        repetition_penalty, presence_penalty, frequency_penalty: as in OpenAI's API and in CTRL.
        ignore_eos: go on after the model's end-of-text token.
        slide: where prompt and output fill the context, that many first tokens stay, the older half of the others
            is dropped, and the output goes on.
        logprobs, prompt_logprobs: log-probabilities of the tokens, and of this many likeliest ones beside each.
        skip_special_tokens: control tokens give no text.
        speculation: False decodes plainly.
        add_special_tokens: the prompt begins with the model's own tokens, as that for the beginning of a text.
        truncate_prompt_tokens: only so many last tokens of the prompt are used.
        policy: "auto" or "fixed": whether measured costs decide how much is drafted.
        max_draft_tokens: drafted tokens of a step, at most.
        max_draft_len: drafted tokens of a path, at most.
        max_children: drafted continuations of one token, at most; 1 for chains.
        methods: the names of the drafters that draft, among the drafters that the engine was opened with.
        prediction: text, or token ids, that much of the output should repeat, such as the file to be edited:
            drafts come from it.
        logits_processor: a function, or a list of them, that is given the tokens so far (numpy, int32) and the logits
            of the next one (numpy, float32 [vocabulary]), before penalties and temperature. It changes the logits in
            place or returns others. Text is exact if nothing else decides the change. If it raises, the request
            ends with the reason "error". logits_processors is the same.
        adapters: names of the LoRA adapters to use, each perhaps with ":SCALE" behind it; none of them where the
            list is empty. Without it the engine's defaults.
    """

    temperature: Optional[float] = None
    top_k: Optional[int] = None
    top_p: Optional[float] = None
    min_p: Optional[float] = None
    top_n_sigma: Optional[float] = None
    typical_p: Optional[float] = None
    xtc_probability: Optional[float] = None
    xtc_threshold: Optional[float] = None
    dry_multiplier: Optional[float] = None
    dry_base: Optional[float] = None
    dry_allowed_length: Optional[int] = None
    dry_penalty_last_n: Optional[int] = None
    dry_sequence_breaker: Optional[Sequence[str]] = None
    seed: Optional[int] = None
    n: int = 1
    max_tokens: Optional[int] = None
    min_tokens: Optional[int] = None
    stop: Union[str, Sequence[str], None] = None
    stop_token_ids: Optional[Sequence[int]] = None
    bad: Union[str, Sequence[str], None] = None
    allowed_token_ids: Optional[Sequence[int]] = None
    bad_token_ids: Optional[Sequence[int]] = None
    guided_decoding: Optional[GuidedDecodingParams] = None
    logit_bias: Optional[Dict[int, float]] = None
    repetition_penalty: Optional[float] = None
    presence_penalty: Optional[float] = None
    frequency_penalty: Optional[float] = None
    ignore_eos: Optional[bool] = None
    slide: Optional[int] = None
    logprobs: Optional[int] = None
    prompt_logprobs: Optional[int] = None
    skip_special_tokens: Optional[bool] = None
    add_special_tokens: bool = True
    truncate_prompt_tokens: Optional[int] = None
    speculation: Optional[bool] = None
    policy: Optional[str] = None
    max_draft_tokens: Optional[int] = None
    max_draft_len: Optional[int] = None
    max_children: Optional[int] = None
    methods: Optional[Sequence[str]] = None
    prediction: Union[str, Sequence[int], None] = None
    adapters: Union[str, Sequence[str], None] = None
    logits_processor: "Union[LogitsProcessor, Sequence[LogitsProcessor], None]" = None

    def __init__(self, **arguments: Any) -> None:
        names = {field.name: field.default for field in dataclasses.fields(self)}
        arguments = _ours(arguments)
        for name, default in names.items():
            setattr(self, name, arguments.pop(name, default))
        if arguments:
            raise TypeError(_unknown(next(iter(arguments)), list(names)))
        if self.n is None:
            raise ValueError("n: expected a whole number of at least 1, found None")
        check_whole("n", self.n)
        check_whole("truncate_prompt_tokens", self.truncate_prompt_tokens)
        if self.guided_decoding is not None and not isinstance(self.guided_decoding, GuidedDecodingParams):
            raise ValueError(f"guided_decoding: expected GuidedDecodingParams, found {self.guided_decoding!r}")
        if not all(callable(processor) for processor in self._processors()):
            raise ValueError(f"logits_processor: expected functions, found {self.logits_processor!r}")
        for name, values in self.parameters(lambda text: [0]):
            if name != "structured_outputs":  # a grammar is read with the model's tokens
                _engine.check_parameter(name, values)

    def logits_function(self) -> "Optional[Callable[[numpy.ndarray, numpy.ndarray], None]]":
        """The logits processors as one function, which changes the logits in place."""
        processors = self._processors()
        if not processors:
            return None

        def change(token_ids: "numpy.ndarray", logits: "numpy.ndarray") -> None:
            try:
                for processor in processors:
                    changed = processor(token_ids, logits)
                    if changed is not None:
                        logits[:] = changed
            except Exception:
                log.warning("a logits processor failed, which ends its request", exc_info=True)
                raise

        return change

    def _processors(self) -> list:
        one_or_more = self.logits_processor
        if one_or_more is None:
            return []
        return list(one_or_more) if isinstance(one_or_more, (list, tuple)) else [one_or_more]

    def parameters(self, encode: Callable[[str], List[int]]) -> List[Tuple[str, List[str]]]:
        """The parameters as the engine reads them; `encode` turns a text into token ids."""
        found = [(name, [as_text(getattr(self, name))]) for name in _PLAIN if getattr(self, name) is not None]
        if self.dry_sequence_breaker is not None:
            found.append(("dry_sequence_breaker", list(self.dry_sequence_breaker) or ["none"]))
        if self.top_k is not None:
            found.append(("top_k", [str(0 if self.top_k == -1 else self.top_k)]))
        if self.stop:
            found.append(("stop", _texts(self.stop)))
        for name in ("stop_token_ids", "allowed_token_ids"):
            if getattr(self, name):
                found.append((name, [",".join(str(operator.index(token)) for token in getattr(self, name))]))
        if self.adapters is not None:
            found.append(("adapters", _texts(self.adapters) or ["none"]))
        if self.methods:
            found.append(("methods", _texts(self.methods)))
        if self.prediction:
            ids = encode(self.prediction) if isinstance(self.prediction, str) else self.prediction
            found.append(("prediction_token_ids", [",".join(str(int(token)) for token in ids)]))
        if self.logit_bias:
            found.append(("logit_bias", [f"{operator.index(token)}={as_text(bias)}" for token, bias in self.logit_bias.items()]))
        if self.guided_decoding is not None:
            found.append(("structured_outputs", [json.dumps(self.guided_decoding.forms)]))
        # A word within a text begins with a space.
        spellings = [spelling for text in _texts(self.bad or ()) for spelling in (text, " " + text.lstrip())]
        forbidden = [",".join(map(str, encode(spelling))) for spelling in spellings]
        forbidden += [str(operator.index(token)) for token in self.bad_token_ids or ()]
        if forbidden:
            found.append(("forbidden_token_ids", list(dict.fromkeys(forbidden))))
        return found


def check_whole(name: str, value: Any) -> None:
    """Raises ValueError unless the value is None or a whole number of at least 1."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise ValueError(f"{name}: expected a whole number of at least 1, found {value!r}")


def _texts(texts: Union[str, Sequence[str]]) -> List[str]:
    return [texts] if isinstance(texts, str) else list(texts)


def _ours(arguments: Dict[str, Any]) -> Dict[str, Any]:
    """The arguments under our names, without arguments that have no effect."""
    arguments = dict(arguments)
    for name, values in _WITHOUT_EFFECT.items():
        if name in arguments and values and arguments[name] not in values:
            raise ValueError(f"{name}: expected {values[0]!r}, found {arguments[name]!r}; there is no such thing here")
        arguments.pop(name, None)
    best_of = arguments.pop("best_of", None)
    if best_of not in (None, arguments.get("n", 1)):
        raise ValueError(f"best_of: expected the value of n, found {best_of}; all answers are returned")
    end = arguments.pop("end_id", None)
    if end == -1:
        arguments["ignore_eos"] = True
    elif end is not None:
        arguments["stop_token_ids"] = [*(arguments.get("stop_token_ids") or []), end]
    for theirs, ours in (("bad_words", "bad"), ("structured_outputs", "guided_decoding"),
                         ("logits_processors", "logits_processor")):
        if theirs in arguments:
            arguments.setdefault(ours, arguments.pop(theirs))
    return arguments


def _unknown(name: str, known: List[str]) -> str:
    import difflib

    near = difflib.get_close_matches(name, known, 1, 0)
    return f"unknown sampling parameter '{name}'; did you mean '{near[0]}'?"
