# SPDX-License-Identifier: Apache-2.0
"""The tutorial is a notebook that runs, and its assertion of equality holds."""

import json
import os
import pathlib

import pytest
from conftest import MODELS, ROOT

NOTEBOOK = ROOT / "examples" / "greedy_tutorial.ipynb"
SMOLLM2 = "SmolLM2-135M-Instruct.Q4_1.gguf"


def smollm2() -> str:
    """The default model in the user's own cache; empty: it is not there."""
    cache = pathlib.Path(os.environ.get("HOME", "/nowhere")) / ".cache"
    found = sorted(cache.glob(f"outrider/models/*/*/{SMOLLM2}"))
    return os.environ.get("TEST_SMOLLM2") or (str(found[0]) if found else "")


def run_cells(target: str, draft: str) -> str:
    """Runs the notebook in Jupyter, or without it cell by cell; returns what it prints."""
    os.environ.update(TUTORIAL_TARGET=target, TUTORIAL_DRAFT=draft)
    try:
        import nbformat
        from nbclient import NotebookClient
    except ImportError:
        return run_plainly()
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(ROOT)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("text/html" in output.get("data", {}) for output in outputs)
    return "".join(output.get("text", "") for output in outputs)


def run_plainly() -> str:
    import contextlib
    import io

    printed, scope = io.StringIO(), {}
    with contextlib.redirect_stdout(printed):
        for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
            if cell["cell_type"] == "code":
                exec("".join(cell["source"]), scope)
    return printed.getvalue()


def test_with_the_built_in_pair():
    printed = run_cells(str(MODELS / "outrider-small"), str(MODELS / "outrider-draft"))
    assert printed.count("the same tokens") == 2


@pytest.mark.skipif(not smollm2(), reason="SmolLM2 is not on this machine (outrider pull smollm2)")
@pytest.mark.parametrize("draft", ["", smollm2()], ids=["lookup", "pair"])  # the smallest SmolLM2 drafts for itself
def test_with_smollm2(draft):
    printed = run_cells(smollm2(), draft)
    assert printed.count("the same tokens") == 2
