# SPDX-License-Identifier: Apache-2.0
"""The command-line program that the package brings along."""

import os
import pathlib
import sys

PROGRAM = pathlib.Path(__file__).resolve().parent / "bin" / "outrider"


def main() -> None:
    """Becomes the program: `outrider` and `python -m outrider` on a command line."""
    os.execv(PROGRAM, ["outrider", *sys.argv[1:]])


def pull(name: str) -> None:
    """Fetches a model into the user's cache, with a progress bar on standard error.

    Args:
        name: a short name ("smollm2") or "hf:ORG/REPO", "hf:ORG/REPO:FILE", "hf:ORG/REPO:QUANT".

    Raises:
        OSError: the model could not be fetched; the message is the program's.
    """
    import subprocess

    done = subprocess.run([PROGRAM, "pull", name], stdout=subprocess.PIPE, stderr=None, text=True)
    if done.returncode != 0:
        raise OSError(f"outrider pull {name} failed with exit status {done.returncode}; see its message above")
