#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes src/kernels/blocks/iq_grids.cc: the grids of GGUF's IQ types, as the `gguf` package of llama.cpp has them.

Usage: make_iq_grids.py [FILE]   (needs the package gguf)
"""

import pathlib
import sys

import numpy as np
from gguf import quants

GRIDS = {"kIq1Grid": quants.IQ1_S, "kIq2XxsGrid": quants.IQ2_XXS, "kIq2XsGrid": quants.IQ2_XS,
         "kIq2SGrid": quants.IQ2_S, "kIq3XxsGrid": quants.IQ3_XXS, "kIq3SGrid": quants.IQ3_S}
PER_LINE = 15

HEAD = """// SPDX-License-Identifier: Apache-2.0
// Written by tools/make_iq_grids.py.
#include "kernels/blocks/iq_grids.h"

namespace outrider {

// clang-format off
"""


def text_of(name, kind):
    entries = np.frombuffer(bytes.fromhex(kind.grid_hex.decode()), dtype="<u2")
    assert len(entries) == kind.grid_shape[0]
    lines = [",".join(f"0x{entry:04x}" for entry in entries[i : i + PER_LINE]) for i in range(0, len(entries), PER_LINE)]
    return f"const uint16_t {name}[{len(entries)}] = {{\n" + ",\n".join(lines) + "};\n\n"


def main():
    path = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "src/kernels/blocks/iq_grids.cc")
    grids = "".join(text_of(name, kind) for name, kind in GRIDS.items())
    path.write_text(HEAD + grids + "// clang-format on\n\n}  // namespace outrider\n")


if __name__ == "__main__":
    main()
