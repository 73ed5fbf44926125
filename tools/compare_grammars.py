#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the verdicts of Outrider's grammars with Python's `re` and the `jsonschema` package.

usage: compare_grammars.py build/release/bin/grammar_probe [--count 2000] [--seed 7] [--record VERDICTS.jsonl]

Regular expressions (also written as GBNF, and as the pattern of a string in a schema) are tested on every text over a
small alphabet. Schemas are tested on valid and broken instances, and on texts that the automaton itself generates. `re`
backtracks: where repetitions nest it may need hours for one expression, so it gets PATIENCE_S of processor time each.
"""

import argparse
import itertools
import json
import random
import re
import signal
import subprocess
import sys
import time
from decimal import Decimal

from jsonschema import Draft202012Validator

ALPHABET = 'ab"1'
PATIENCE_S = 0.5


class OutOfPatience(Exception):
    pass


def lose_patience(*_):
    raise OutOfPatience


def judged(oracle, texts):
    """Returns (text, verdict) of every text for which the oracle ended in time."""
    verdicts = []
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, PATIENCE_S)
        for text in texts:
            verdicts.append((text, bool(oracle(text))))
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    except OutOfPatience:
        pass
    return verdicts


class Progress:
    """Prints a line on standard error every few seconds."""

    INTERVAL_S = 5

    def __init__(self, what, count):
        self.what, self.count = what, count
        self.start = self.last = time.monotonic()

    def show(self, done, different):
        now = time.monotonic()
        if now - self.last < self.INTERVAL_S:
            return
        self.last = now
        print(f"{self.what}: {done} of {self.count}, {different} different, {now - self.start:.0f} s", file=sys.stderr)


class Probe:
    """Asks grammar_probe and records up to 30 verdicts per grammar; main() keeps them only if nothing differs."""

    def __init__(self, program):
        self.records = []
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, **question):
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if "error" not in answer:
            verdicts = list(zip(question["texts"], answer["accepts"]))
            verdicts = verdicts[::max(1, len(verdicts) // 30)]
            self.records.append({"kind": question["kind"], "grammar": question["grammar"], "verdicts": dict(verdicts)})
        return answer


# ---- random regular expressions, as pairs of a regex and the GBNF rule that accepts the same texts

def random_atom(rng, depth):
    kind = rng.randrange(8 if depth > 0 else 5)
    if kind == 0:
        return ".", "[^\\n]"
    if kind == 1:
        negated = rng.choice(["", "^"])
        members = "".join(sorted(rng.sample("ab1", rng.randint(1, 2))))
        return f"[{negated}{members}]", f"[{negated}{members}]"
    if kind == 2:
        return rng.choice([("\\d", "[0-9]"), ("\\w", "[0-9A-Za-z_]"), ("\\D", "[^0-9]"), ("[a-b\\d]", "[a-b0-9]")])
    if kind in (3, 4):
        letter = rng.choice(ALPHABET)
        return letter, '"\\""' if letter == '"' else f'"{letter}"'
    regex, gbnf = random_regex(rng, depth - 1)
    return f"({rng.choice(['', '?:'])}{regex})", f"({gbnf})"


def random_regex(rng, depth):
    regexes, gbnfs = [], []
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        regex, gbnf = "", ""
        for _ in range(rng.choice([0, 1, 1, 2, 2, 3])):
            atom, rule = random_atom(rng, depth)
            suffix = rng.choice(["", "", "", "?", "*", "+", "{2}", "{1,2}", "{0,3}", "{2,}", "{3,5}"])
            regex += atom + suffix + (rng.choice(["", "?"]) if suffix else "")
            gbnf += f" {rule}{suffix}"
        regexes.append(regex)
        gbnfs.append(gbnf or '""')
    return "|".join(regexes), " | ".join(gbnfs)


def compare_regexes(probe, rng, count):
    texts = ["".join(t) for size in range(7) for t in itertools.product(ALPHABET, repeat=size)]
    short = [text for text in texts if len(text) <= 4] + ["a\nb", "\\", "é", "a\tb", "😀"]
    different = checked = refused = given_up = 0
    progress = Progress("regular expressions", count)
    for number in range(count):
        progress.show(number, different)
        regex, gbnf = random_regex(rng, 2)
        anchored = rng.choice(["", "^"]) + f"(?:{regex})" + rng.choice(["", "$"])
        cases = [("regex", regex, texts if number % 4 == 0 else short, re.compile(regex, re.ASCII).fullmatch),
                 ("gbnf", "root ::=" + gbnf, short, re.compile(regex, re.ASCII).fullmatch)]
        search = re.compile(anchored.removesuffix("$") + ("\\Z" if anchored.endswith("$") else ""), re.ASCII).search
        cases.append(("schema", json.dumps({"type": "string", "pattern": anchored}),
                      [json.dumps(text, ensure_ascii=False) for text in short], lambda text: search(json.loads(text))))
        for kind, grammar, tried, oracle in cases:
            answer = probe.ask(kind=kind, grammar=grammar, texts=tried, walks=3, seed=number)
            if "error" in answer:
                refused += 1
                if "may be empty" not in answer["error"]:
                    different += 1
                    print(f"{kind} {grammar!r}: {answer['error']}")
                continue
            walks = [walk for walk in answer["walks"] if isinstance(walk, str)]
            accepted = answer["accepts"] + [True] * len(walks)
            verdicts = judged(oracle, tried + walks)
            given_up += len(verdicts) < len(accepted)
            wrong = [text for (text, verdict), ours in zip(verdicts, accepted) if verdict != ours]
            wrong += [walk for walk in answer["walks"] if isinstance(walk, dict)]
            checked += len(verdicts)
            if wrong:
                different += 1
                print(f"{kind} {grammar!r}: differs on {wrong[:3]}")
    print(f"regular expressions: {count} in three forms, {checked} texts, {refused} refused, {different} different, "
          f"{given_up} too slow for re", flush=True)
    return different


# ---- random schemas, as pairs of a schema and a function that makes a valid instance

def random_bounds(rng, low_key, high_key, number):
    schema = {}
    a, b = sorted((number(), number()))
    if rng.random() < 0.7:
        schema[low_key] = a
    if rng.random() < 0.7:
        schema[high_key] = b
    return schema


def random_number_schema(rng):
    scale = rng.choice([3, 20, 1000, 10**9])
    if rng.random() < 0.6:
        schema = {"type": "integer", **random_bounds(rng, rng.choice(["minimum", "exclusiveMinimum"]), rng.choice(
            ["maximum", "exclusiveMaximum"]), lambda: rng.randint(-scale, scale))}
        number = lambda r: r.randint(-2 * scale, 2 * scale)
    else:
        schema = {"type": "number", **random_bounds(rng, rng.choice(["minimum", "exclusiveMinimum"]), rng.choice(
            ["maximum", "exclusiveMaximum"]), lambda: round(rng.uniform(-scale, scale), rng.randint(0, 3)))}
        number = lambda r: round(r.uniform(-1.5 * scale, 1.5 * scale), r.randint(0, 4))
    validator = Draft202012Validator(schema)

    def make(r):
        near = [schema[key] + d for key in schema if key != "type" for d in (0, 1, -1, 0.25, -0.001)]
        if schema["type"] == "integer":
            near = [int(x) for x in near]
        for _ in range(200):
            value = r.choice(near) if near and r.random() < 0.4 else number(r)
            if abs(value) > 1e-4 or value == 0:
                if validator.is_valid(value):
                    return value + 0  # turns -0.0 into 0.0
        raise LookupError
    return schema, make


def random_text(rng):
    return "".join(rng.choice(['a', 'B', '7', ' ', '"', '\\', '\n', 'é', '漢', '😀', '/', '\x01']) for _ in range(rng.randint(0, 6)))


def random_string_schema(rng):
    kind = rng.randrange(4)
    if kind == 0:
        return {"type": "string"}, random_text
    if kind == 1:
        low = rng.randint(0, 3)
        high = low + rng.randint(0, 3)
        schema = {"type": "string", "minLength": low, "maxLength": high}
        return schema, lambda r: "".join(r.choice('ab"é😀') for _ in range(r.randint(low, high)))
    if kind == 2:
        values = [random_text(rng) for _ in range(rng.randint(1, 5))] + rng.choice([[], [3, None, 1.5, [1, {"k": "v"}]]])
        return {"enum": values}, lambda r: r.choice(values)
    value = rng.choice(["x", 17, True, None, {"a": [1, 2], "b": {}}, []])
    return {"const": value}, lambda r: value


def random_object_schema(rng, depth, definitions):
    names = rng.sample(["a", "b", "name", "näme", 'q"q', "ab", "abc"], rng.randint(0, 4))
    made = {name: random_schema(rng, depth - 1, definitions) for name in names}
    required = [name for name in names if rng.random() < 0.5]
    schema = {"type": "object", "properties": {name: made[name][0] for name in names}}
    if required:
        schema["required"] = rng.sample(required, len(required))
    extra = None
    if rng.random() < 0.4:
        extra, extra_maker = random_schema(rng, 0, definitions)
        schema["additionalProperties"] = extra
    elif rng.random() < 0.5:
        schema["additionalProperties"] = False

    def make(r):
        value = {name: made[name][1](r) for name in names if name in required or r.random() < 0.5}
        if extra is not None:
            for name in r.sample(["c", "abcd", "z z", ""], r.randint(0, 2)):
                value[name] = extra_maker(r)
        return value
    return schema, make


def random_array_schema(rng, depth, definitions):
    item, item_maker = random_schema(rng, depth - 1, definitions)
    low = rng.randint(0, 2)
    high = low + rng.randint(0, 3)
    schema = {"type": "array", "items": item, "minItems": low, "maxItems": high}
    if rng.random() < 0.7:
        return schema, lambda r: [item_maker(r) for _ in range(r.randint(low, high))]
    prefix = [random_schema(rng, depth - 1, definitions) for _ in range(rng.randint(1, 3))]
    schema["prefixItems"] = [one for one, _ in prefix]
    makers = [maker for _, maker in prefix]
    return schema, lambda r: [(makers[i] if i < len(makers) else item_maker)(r) for i in range(r.randint(low, high))]


def random_schema(rng, depth, definitions):
    kind = rng.randrange(9 if depth > 0 else 4)
    if kind <= 1:
        return random_number_schema(rng)
    if kind == 2:
        return random_string_schema(rng)
    if kind == 3:
        return rng.choice([({"type": "boolean"}, lambda r: r.random() < 0.5), ({"type": "null"}, lambda r: None),
                           ({"type": ["string", "null"]}, lambda r: r.choice([None, "x"])),
                           ({}, lambda r: r.choice([None, [1], {"x": "y"}, 1.5, "s"]))])
    if kind in (4, 5):
        return random_object_schema(rng, depth, definitions)
    if kind == 6:
        return random_array_schema(rng, depth, definitions)
    if kind == 7:
        parts = [random_schema(rng, depth - 1, definitions) for _ in range(rng.randint(1, 3))]
        return {"anyOf": [one for one, _ in parts]}, lambda r: r.choice(parts)[1](r)
    if rng.random() < 0.5:
        name = f"d{len(definitions)}"
        definitions[name] = None
        definitions[name], maker = random_schema(rng, depth - 1, definitions)
        return {"$ref": f"#/$defs/{name}"}, maker
    parts = [({"type": "object", "properties": {name: one}, "required": [name]}, name, maker)
             for name, (one, maker) in ((n, random_schema(rng, depth - 1, definitions)) for n in ("p", "q"))]
    return ({"allOf": [one for one, _, _ in parts], "description": "both"},
            lambda r: {name: maker(r) for _, name, maker in parts})


def dumps(rng, value):
    style = rng.choice([{"separators": (",", ":")}, {}, {"indent": 2}, {"indent": 4}])
    return json.dumps(value, ensure_ascii=False, **style)


def broken(rng, value):
    """Returns the value with one small change, which may leave it valid."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        name = rng.choice(list(value))
        change = rng.randrange(3)
        if change == 0:
            return {key: part for key, part in value.items() if key != name}
        if change == 1:
            return {**value, "extra": 1}
        return {**value, name: broken(rng, value[name])}
    if isinstance(value, list) and value and rng.random() < 0.8:
        index = rng.randrange(len(value))
        return rng.choice([value + [value[0]], value[:-1], value[:index] + [broken(rng, value[index])] + value[index + 1:]])
    if isinstance(value, bool) or value is None:
        return rng.choice([0, "true", None, True])
    if isinstance(value, (int, float)):
        return rng.choice([value + 1, value - 1, -value, value * 10, value + 0.5, str(value)])
    if isinstance(value, str):
        return rng.choice([value + "a", value[:-1], value + "abcdefg", 3])
    return rng.choice([{}, [], {"extra": None}, "x"])


def load(text):
    return json.loads(text, parse_float=lambda number: float(Decimal(number)))


def compare_schemas(probe, rng, count):
    different = checked = 0
    progress = Progress("schemas", count)
    for number in range(count):
        progress.show(number, different)
        definitions = {}
        schema, maker = random_schema(rng, 3, definitions)
        if definitions:
            schema = {"allOf": [schema], "$defs": definitions} if "$ref" in schema else {**schema, "$defs": definitions}
        validator = Draft202012Validator(schema)
        try:
            good = [maker(rng) for _ in range(8)]
        except LookupError:
            continue
        texts = [dumps(rng, value) for value in good]
        changed = [dumps(rng, broken(rng, value)) for value in good]
        answer = probe.ask(kind="schema", grammar=json.dumps(schema), texts=texts + changed, walks=8, seed=number)
        if "error" in answer:
            different += 1
            print(f"{json.dumps(schema)}: {answer['error']}")
            continue
        problems = [f"refused {text}" for text, accepted in zip(texts, answer["accepts"]) if not accepted]
        walks = [walk for walk in answer["walks"] if isinstance(walk, str)]
        problems += [f"stuck at {walk['stuck']}" for walk in answer["walks"] if isinstance(walk, dict)]
        accepted = [text for text, verdict in zip(changed, answer["accepts"][len(texts):]) if verdict]
        for text in accepted + walks + texts:
            try:
                valid = validator.is_valid(load(text))
            except ValueError:
                valid = False
            if not valid:
                problems.append(f"accepted {text}")
        checked += len(texts) + len(changed) + len(walks)
        if problems:
            different += 1
            print(f"{json.dumps(schema)}: {problems[:3]}")
    print(f"schemas: {count}, {checked} texts, {different} different")
    return different


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("probe", help="the program grammar_probe")
    parser.add_argument("--count", type=int, default=2000, help="expressions, and as many schemas")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--record", help="where the verdicts go: tests/data/grammar/verdicts.jsonl")
    options = parser.parse_args()
    signal.signal(signal.SIGVTALRM, lose_patience)
    probe = Probe(options.probe)
    rng = random.Random(options.seed)
    different = compare_regexes(probe, rng, options.count)
    different += compare_schemas(probe, rng, options.count)
    if options.record and not different:
        with open(options.record, "w", encoding="utf-8") as file:
            for record in probe.records:
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
