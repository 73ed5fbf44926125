# SPDX-License-Identifier: Apache-2.0
"""Shows the text in a notebook in colours that say how each token came about, and the trees of the steps."""

import html
from typing import Any, Iterator, List, Tuple

_COLOURS = {"accepted": "#1a7f37", "recovered": "#cf222e", "bonus": "#0969da"}
_MARKS = {"accepted": "✓", "rejected": "✗"}
_FATE_COLOURS = {"accepted": "#1a7f37", "rejected": "#cf222e"}
_TREE_STYLE = "margin:0;line-height:1.3;font-family:monospace;white-space:pre"


def pieces(output: Any, tokenizer: Any) -> List[Tuple[str, str]]:
    """(text, origin) of the tokens of an answer; they join to its text. Tokens that share a character are one piece."""
    found: List[Tuple[str, str]] = []
    pending, first = b"", "plain"
    for token, origin in zip(output.token_ids, output.origins):
        if tokenizer.is_control(token):
            continue
        first = first if pending else origin
        pending += tokenizer.token_bytes(token)
        try:
            found.append((pending.decode(), first))
            pending = b""
        except UnicodeDecodeError:
            continue
    return _cut_to(output.text, found)


def _cut_to(text: str, found: List[Tuple[str, str]]) -> List[Tuple[str, str]]:
    """Some tokenizers drop the space at the beginning of a text, and a stop string ends it early."""
    if found and found[0][0].startswith(" ") and not text.startswith(" "):
        found[0] = (found[0][0][1:], found[0][1])
    cut, left = [], len(text)
    for piece, origin in found:
        if left > 0:
            cut.append((piece[:left], origin))
        left -= len(piece)
    return cut


def _span(text: str, colour: str) -> str:
    escaped = html.escape(text)
    return f'<span style="color:{colour}">{escaped}</span>' if colour else escaped


def coloured_text(output: Any, tokenizer: Any) -> str:
    """The text of an answer; accepted, recovered and bonus tokens have colours."""
    return "".join(_span(text, _COLOURS.get(origin, "")) for text, origin in pieces(output, tokenizer))


def _legend(output: Any) -> str:
    stats = output.speculation
    names = " ".join(_span(name, colour) for name, colour in _COLOURS.items()) + " plain"
    if stats is None:
        return names
    return (f"{names} · {html.escape(stats.method)}: {stats.accepted} of {stats.drafted} drafted tokens accepted, "
            f"{stats.acceptance_length:.2f} tokens per pass")


def answer_html(output: Any, tokenizer: Any) -> str:
    trees = ""
    if output.steps:
        inner = "".join(tree_html(step, tokenizer) for step in output.steps)
        trees = f"<details><summary>{len(output.steps)} steps</summary>{inner}</details>"
    return (f'<div style="white-space:pre-wrap">{coloured_text(output, tokenizer)}</div>'
            f"<small>{_legend(output)}</small>{trees}")


def request_html(request: Any) -> str:
    prompt = f'<div style="opacity:.6;white-space:pre-wrap">{html.escape(request.prompt or "")}</div>'
    return prompt + "".join(output._repr_html_() for output in request.outputs)


def tree_html(step: Any, tokenizer: Any) -> str:
    """The drafted tree of a step: every token with its fate, and the token that the model added."""
    lines = [f"step {step.step + 1}: {len(step.token_ids)} tokens from {max(0, len(step.nodes) - 1)} drafted ones"]
    if step.nodes:
        lines.append(_name(step.nodes[0].token_id, tokenizer))
        lines += _branches(step, 0, "", tokenizer)
    return f'<div style="{_TREE_STYLE}">' + "\n".join(lines) + "</div>"


def _branches(step: Any, parent: int, indent: str, tokenizer: Any) -> Iterator[str]:
    children = [number for number, node in enumerate(step.nodes) if number and node.parent == parent]
    last_accepted = max((number for number, node in enumerate(step.nodes) if node.fate == "accepted"), default=0)
    adds_own = parent == last_accepted and step.origins and step.origins[-1] != "accepted"
    for number in children:
        node = step.nodes[number]
        is_last = number == children[-1] and not adds_own
        shown = (f"{_MARKS.get(node.fate, '·')} {_text(node.token_id, tokenizer)}  "
                 f"{_probabilities(node)}{node.cause or node.fate}")
        yield indent + ("└─ " if is_last else "├─ ") + _span(shown, _FATE_COLOURS.get(node.fate, "#6e7781"))
        yield from _branches(step, number, indent + ("   " if is_last else "│  "), tokenizer)
    if adds_own:
        own = f"+ {_text(step.token_ids[-1], tokenizer)}  {step.origins[-1]}"
        yield indent + "└─ " + _span(own, _COLOURS["bonus"])


def _probabilities(node: Any) -> str:
    drafter = f"q {node.draft_probability:.2g}  " if node.draft_probability < 1 else ""
    model = "" if node.target_probability is None else f"p {node.target_probability:.2g}  "
    return drafter + model


def _text(token: int, tokenizer: Any) -> str:
    return repr(tokenizer.token_bytes(token).decode(errors="replace"))


def _name(token: int, tokenizer: Any) -> str:
    return html.escape(_text(token, tokenizer))
