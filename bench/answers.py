#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the right answers of a model, plain and with drafts. With --last-token the network to a server ends after some
tokens, and the drafter writes the rest (Table 4 of Mixture of Attentions, arXiv 2410.03804).

    bench/answers.py MODEL TASKS.jsonl [--speculative DRAFTER] [--last-token 50] [--run-code]

A task is a line. It has `prompt` or `question`, and what is right:
- `answer`, `reference` or `response`: the number after ####, or else its last number, or else its words
- `test` and `entry_point` (HumanEval), `test_list` (MBPP), or lines `assert ...` in the prompt: a program

Tests run the program that the model wrote, on this machine and with this user's rights, so they need --run-code.
Options that the script does not know go to `outrider generate`, as --chat.
"""

import argparse
import contextlib
import json
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")
CODE = re.compile(r"```(?:python)?\n(.*?)(?:```|\Z)", re.DOTALL)
PROGRAM_SECONDS = 10
PROGRAM_BYTES = 1 << 30


def prompt_of(task):
    return task.get("prompt") or task["question"]


def tests_of(task):
    """The lines that a program must pass; none: the task asks for no program."""
    if "entry_point" in task:
        return [task["test"], f"check({task['entry_point']})"]
    return task.get("test_list") or re.findall(r"^assert .*$", prompt_of(task), re.MULTILINE)


def program_of(task, text):
    """The function that an output holds: in a block of code, or as what goes on with a HumanEval prompt."""
    block = CODE.search(text)
    if block:
        return block.group(1)
    if "entry_point" not in task:
        return text
    return task["prompt"] + re.split(r"\n(?=[^\s#])", text)[0]


def limit_program():
    resource.setrlimit(resource.RLIMIT_AS, (PROGRAM_BYTES, PROGRAM_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (PROGRAM_SECONDS, PROGRAM_SECONDS))


def passes(task, text):
    program = "\n".join([program_of(task, text), *tests_of(task)])
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run([sys.executable, "-I", "-c", program], cwd=folder, stdin=subprocess.DEVNULL,
                                  capture_output=True, timeout=2 * PROGRAM_SECONDS, preexec_fn=limit_program)
        except subprocess.TimeoutExpired:
            return False
    return done.returncode == 0


def last_number(text):
    numbers = NUMBER.findall(text)
    return float(numbers[-1].replace(",", "")) if numbers else None


def is_right(task, text):
    if tests_of(task):
        return passes(task, text)
    expected = str(next(task[key] for key in ("answer", "reference", "response") if key in task))
    number = last_number(expected.rsplit("####")[-1])
    if number is not None:
        return last_number(text) == number
    return " ".join(text.lower().split()) == " ".join(expected.lower().split())


def read_tasks(options):
    """Tasks, spread evenly over the file."""
    tasks = [json.loads(line) for line in options.tasks.read_text().splitlines() if line.strip()]
    if not options.run_code and any(tests_of(task) for task in tasks):
        sys.exit("answers.py: these tasks run programs that the model writes; --run-code allows that")
    count = min(options.limit or len(tasks), len(tasks))
    return [tasks[i * len(tasks) // count] for i in range(count)]


def generate(options, more, task, *arguments):
    command = [options.outrider, "generate", options.model, "--json", "-p", prompt_of(task), "--max-tokens",
               str(options.max_tokens), *more, *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def address_of(process, pattern):
    """The address that a program prints when it is ready."""
    for line in process.stdout:
        found = re.search(pattern, line)
        if found:
            return found.group(1)
    sys.exit(f"answers.py: {process.args[0]} ended before it was ready")


@contextlib.contextmanager
def running(command, pattern):
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        yield address_of(process, pattern)
    finally:
        process.terminate()
        process.wait()


def after_cut(options, more, server, task, last_token):
    """The output of a client that loses its server's network after this many tokens."""
    network = [options.netsim, server, "--last-token", str(last_token)]
    with running(network, r"forwarding (\S+)") as address:
        return generate(options, more, task, "--server", f"ws://{address}", "--speculative", options.speculative,
                        "--server-offline", "keep", "--server-offline-after", "0.2")


def row_of(name, tasks, answers, plain):
    right = sum(is_right(task, answer["text"]) for task, answer in zip(tasks, answers))
    same = sum(answer["token_ids"] == other["token_ids"] for answer, other in zip(answers, plain))
    runs = [run for answer in answers for run in answer.get("origins", [])]
    offline = sum(run["tokens"] for run in runs if run["origin"] == "offline")
    tokens = sum(len(answer["token_ids"]) for answer in answers)
    return [name, f"{right} of {len(tasks)}", f"{100 * right / len(tasks):.1f} %", same, tokens, offline]


def rows(options, more, tasks):
    plain = [generate(options, more, task, "--speculative", "none") for task in tasks]
    yield row_of("plain", tasks, plain, plain)
    drafted = [generate(options, more, task, "--speculative", options.speculative) for task in tasks]
    if [answer["token_ids"] for answer in drafted] != [answer["token_ids"] for answer in plain]:
        sys.exit("answers.py: drafts have changed a text; please report this")
    yield row_of("with drafts", tasks, drafted, plain)
    if not options.last_token:
        return
    server = [options.outrider, "serve", options.model, "--port", "0", "--remote-drafting", "--speculative",
              options.speculative]
    with running(server, r"http://(\S+?)/?(?:\s|$)") as address:
        for last in options.last_token:
            cut = [after_cut(options, more, address, task, last) for task in tasks]
            yield row_of(f"server until token {last}", tasks, cut, plain)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("tasks", type=pathlib.Path)
    parser.add_argument("--outrider", default="build/release/bin/outrider")
    parser.add_argument("--netsim", default="build/release/bin/netsim")
    parser.add_argument("--speculative", default="auto", help="the drafter; after a cut it writes alone, as a draft model or "
                        "a Mixture of Attentions can")
    parser.add_argument("--last-token", type=int, nargs="*", default=[], help="tokens after which the network ends")
    parser.add_argument("--limit", type=int, default=0, help="tasks used; 0: all")
    parser.add_argument("--max-tokens", type=int, default=256)
    parser.add_argument("--run-code", action="store_true", help="run the programs that the model writes")
    options, more = parser.parse_known_args()
    tasks = read_tasks(options)
    columns = ["way", "right", "share", "plain text", "tokens", "written offline"]
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|")
    for row in rows(options, more, tasks):
        print("| " + " | ".join(map(str, row)) + " |", flush=True)


if __name__ == "__main__":
    main()
