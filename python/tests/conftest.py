# SPDX-License-Identifier: Apache-2.0
"""The package under test is the installed wheel; models belong to the repository."""

import json
import os
import pathlib
import subprocess
import tempfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = ROOT / "models"
# Before the package is imported: nothing is read from or written to the user's folders.
os.environ["OUTRIDER_CACHE_DIR"] = "none"
os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="outrider_test_")

import outrider  # noqa: E402
from outrider._program import PROGRAM  # noqa: E402

PROMPT = "one two three one two three one two"


@pytest.fixture(scope="session")
def run_program():
    """Runs the program of the wheel with --json."""

    def run(*arguments: str) -> dict:
        done = subprocess.run([PROGRAM, *arguments, "--json"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.fixture(scope="session")
def llm():
    """The built-in model without speculation."""
    with outrider.LLM("builtin", speculative_config="none") as opened:
        yield opened


@pytest.fixture(scope="session")
def plain_tokens(llm):
    """Output without speculation, by sampling parameters."""

    def tokens(**params) -> list:
        return llm.generate(PROMPT, outrider.SamplingParams(**params)).outputs[0].token_ids

    return tokens
