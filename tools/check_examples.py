#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails on files of examples/ and packaging/ that name what the server does not have: metrics in the dashboard, options
and environment variables in commands. The table of metrics in docs/reference/metrics.md must have exactly the server's
names. JSON and TOML files must parse. Usage: tools/check_examples.py"""

import json
import pathlib
import re
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
METRICS_SOURCE = "src/server/telemetry/server_metrics.cc"
METRICS_PAGE = "docs/reference/metrics.md"
OPTIONS_PAGE = "docs/reference/options.md"
# text.counter("name", ...) and its like: a counter's family ends in _total.
FAMILY = re.compile(r'\btext\.(begin_counter|counter|begin_gauge|gauge|histogram)\(\s*"((?:vllm:|outrider[:_]|process_)\w+)"')
METRIC = re.compile(r"\b(?:(?:vllm|outrider):\w+|outrider_build_info|process_\w+)")
SERVE_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+(?=[= \"`)\],:;]|$)", re.MULTILINE)
VARIABLE = re.compile(r"\bOUTRIDER_[A-Z_]+")
# Names that are not options of the server: what systemd and compose files use beside them.
OWN_VARIABLES = {"OUTRIDER_USER", "OUTRIDER_PORT"}
# A line with one of these runs another program.
OTHER_PROGRAM = re.compile(r"docker|kubectl|apt-get|useradd|COPY|openssl")
FILES_WITH_OPTIONS = ("examples/**/*.yaml", "examples/proxy/*", "examples/clients/README.md", "packaging/*")


def server_metrics(source):
    """The families of metrics that the server writes, with the samples of histograms."""
    names, samples = set(), set()
    for kind, name in FAMILY.findall(source):
        name += "_total" if kind.endswith("counter") else ""
        names.add(name)
        samples |= {name + suffix for suffix in ("_bucket", "_sum", "_count")} if kind == "histogram" else {name}
    return names, samples


def metric_problems(root):
    names, samples = server_metrics((root / METRICS_SOURCE).read_text(encoding="utf-8"))
    if not names:
        yield f"{METRICS_SOURCE}: no metrics found"
    for path in sorted([*root.glob("examples/**/*.json"), *root.glob("examples/monitoring/alerts.yaml")]):
        for name in sorted(set(METRIC.findall(path.read_text(encoding="utf-8"))) - samples):
            yield f"{path.relative_to(root)}: the server has no metric {name}"
    listed = set(METRIC.findall((root / METRICS_PAGE).read_text(encoding="utf-8")))
    yield from (f"{METRICS_PAGE}: no metric {name} in the server" for name in sorted(listed - names))
    yield from (f"{METRICS_PAGE}: {name} is missing" for name in sorted(names - listed))


def option_problems(root):
    page = (root / OPTIONS_PAGE).read_text(encoding="utf-8")
    options, variables = set(re.findall(r"--[a-z][a-z-]+", page)), set(VARIABLE.findall(page)) | OWN_VARIABLES
    for path in sorted(path for pattern in FILES_WITH_OPTIONS for path in root.glob(pattern) if path.is_file()):
        text = "\n".join(line for line in path.read_text(encoding="utf-8").splitlines() if not OTHER_PROGRAM.search(line))
        for name in sorted(set(SERVE_OPTION.findall(text)) - options):
            yield f"{path.relative_to(root)}: outrider has no option {name}"
        for name in sorted(set(VARIABLE.findall(text)) - variables):
            yield f"{path.relative_to(root)}: outrider reads no variable {name}"


def syntax_problems(root):
    for pattern, parse in (("*.json", json.loads), ("*.toml", tomllib.loads)):
        for path in sorted(root.glob(f"examples/**/{pattern}")):
            try:
                parse(path.read_text(encoding="utf-8"))
            except ValueError as error:
                yield f"{path.relative_to(root)}: {error}"


def main() -> int:
    problems = [*metric_problems(ROOT), *option_problems(ROOT), *syntax_problems(ROOT)]
    for problem in problems:
        print(problem)
    print(f"check_examples: {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
