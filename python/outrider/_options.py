# SPDX-License-Identifier: Apache-2.0
"""Python values as the option texts that the engine reads."""

import enum
import os
from typing import Any, Iterator, Tuple

from outrider.lib import _engine


class OptionGroup:
    """Options that belong together, as in TensorRT-LLM: `KvCacheConfig(dtype="auto")`.

    Any option may be given by its name. Names and values are checked here. Options with a
    counterpart here work, options without a meaning on a CPU are taken with one line in the log, and everything else is
    an error. """

    _name = ""  # of the engine's option that the group is; "": the values have no meaning by themselves

    def __init__(self, **options: Any) -> None:
        self._options = {name: value for name, value in options.items() if value is not None}
        if self._name:
            _engine.check_options(list(named_options({self._name: self})), self._drafts_itself())

    def _drafts_itself(self) -> bool:
        return False

    def to_dict(self) -> dict:
        """The options that were given, by name."""
        return dict(self._options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._options.get(name)

    def __repr__(self) -> str:
        inner = ", ".join(f"{name}={value!r}" for name, value in self._options.items())
        return f"{type(self).__name__}({inner})"


def as_text(value: Any) -> str:
    """A value as a YAML file writes it: true, 4, [1,[2]], {4:2}."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, enum.Enum):
        return as_text(value.value)
    if isinstance(value, OptionGroup):
        return as_text(value.to_dict())
    if isinstance(value, dict):
        return "{" + ",".join(f"{as_text(key)}:{as_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple, set)):
        return "[" + ",".join(as_text(item) for item in value) + "]"
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return str(value)


def named_options(options: dict, prefix: str = "") -> Iterator[Tuple[str, str]]:
    """Yields (name, text); a dot joins the names of nested options, and a list gives its name several times.

    Options that are None are left out. Keys of a speculative configuration keep their lists in one text.
    """
    for name, value in options.items():
        path = prefix + str(name)
        if isinstance(value, OptionGroup):
            value = value.to_dict()
        if value is None:
            continue
        if isinstance(value, dict) and not prefix.startswith("speculative_config."):
            yield from named_options(value, path + ".")
        elif isinstance(value, (list, tuple)) and not prefix:
            for item in value:
                yield path, as_text(item)
        else:
            yield path, as_text(value)
