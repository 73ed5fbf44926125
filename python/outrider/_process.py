# SPDX-License-Identifier: Apache-2.0
"""Objects of one process: a forked process gets them, but none of their threads."""

import os
import weakref
from typing import Any

from outrider.lib import _engine

_owners: "weakref.WeakSet[OfProcess]" = weakref.WeakSet()


class OfProcess:
    """Owns a native object with threads. A forked process never destroys its copy, which would wait for them."""

    native: Any = None

    def __init__(self) -> None:
        self.process = os.getpid()
        _owners.add(self)

    @property
    def is_here(self) -> bool:
        return self.process == os.getpid()


def check_process(process: int) -> None:
    """Raises RuntimeError in a process that was forked from this one."""
    if process != os.getpid():
        raise RuntimeError(f"expected the process {process}, which opened the LLM, found {os.getpid()}, forked from it; "
                           "open an LLM after the fork, or start processes by 'spawn'")


def _keep_natives() -> None:
    for owner in list(_owners):
        _engine.keep(owner.native)


os.register_at_fork(after_in_child=_keep_natives)
