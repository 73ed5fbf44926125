#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Proves that code compiled for one instruction set cannot be linked in anywhere else.

A weak symbol (an inline function of a shared header, say) that was compiled with AVX-512 may be the copy that the
linker keeps for the whole program, which then dies on older processors. So objects of an instruction set may define
one global symbol, the accessor of their table, and no weak one.

Usage: check_isa_symbols.py NM ACCESSOR=OBJECT[;OBJECT...] ...
"""

import subprocess
import sys

# Weak data that sanitizers add; it holds no instructions.
SANITIZER_DATA = ("DW.ref.", "typeinfo for ", "typeinfo name for ")


def faults_of(nm, accessor, objects):
    """Sentences about forbidden symbols in the objects; empty when all is well."""
    faults = []
    accessors = 0
    for path in objects:
        listing = subprocess.run([nm, "-C", "--defined-only", path], check=True, capture_output=True, text=True)
        for line in listing.stdout.splitlines():
            _, kind, name = line.split(maxsplit=2)
            if kind == "V" and name.startswith(SANITIZER_DATA):
                continue
            if kind in "WwVvu":
                faults.append(f"{path}: weak symbol {name}")
            elif kind.isupper() and name == f"outrider::{accessor}()":
                accessors += 1
            elif kind.isupper():
                faults.append(f"{path}: global symbol {name}")
    if accessors != 1:
        faults.append(f"expected one definition of outrider::{accessor}(), found {accessors}")
    return faults


def main():
    if len(sys.argv) < 3 or not all("=" in pair for pair in sys.argv[2:]):
        sys.exit(__doc__)
    faults = []
    for pair in sys.argv[2:]:
        accessor, _, objects = pair.partition("=")
        faults += faults_of(sys.argv[1], accessor, objects.split(";"))
    for fault in faults:
        print(fault)
    if faults:
        sys.exit("move the function out of the instruction-set folder, or make it a template over its vector type")
    print(f"{len(sys.argv) - 2} instruction sets define nothing but their tables")


if __name__ == "__main__":
    main()
