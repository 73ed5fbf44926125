#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when nvcc made something of a device kernel that could change its bits or slow it down. In the PTX, arithmetic of
f32 and f64 rounds to nearest once and keeps subnormal numbers, and maxima have constants (with other numbers NaN would be
lost). There are no approximations and no atomic f32. The PTX does not depend on -fmad, so nothing was contracted. ptxas
spilled no register and stayed below the ceiling. Products have tensor-core instructions.

The gates are tried first on kernels with planted mistakes, each of which must be refused.

Usage: tools/check_device_code.py [--planted FILE FILE_WITH_FMAD] [--cubin FILE...] [--ptx FILE FILE_WITH_FMAD LOG]...
(with nothing: skipped)"""

import argparse
import pathlib
import re
import sys

MAX_REGISTERS = 128  # of 256 threads: two blocks fit a multiprocessor
MAX_WIDE_REGISTERS = 255  # of 64 threads: four blocks fit
MAX_CUBIN_BYTES = 12 << 20
SKIPPED = 77
ROUNDED = re.compile(r"^(?:add|sub|mul|fma|div|sqrt)\.rn\.f32$|^(?:add|sub|mul|div|rcp)\.rn\.f64$")
EXACT = re.compile(r"^(?:mov|ld|st|selp|setp|abs|neg|testp|copysign|slct|set|shfl)\b.*\.f(?:32|64)$|"
                   r"^cvt\.f64\.f32$|^cvt\.rn\.(?:f32\.f64|f64\.s32|f64\.u64)$|"
                   r"^cvt(?:\.rn)?\.f32\.(?:s32|u32|f16|bf16)$|"
                   r"^cvt\.rni?\.(?:s32|f16|bf16)\.f32$")
CHOICE = re.compile(r"^(?:max|min)\.f(?:32|64)$")
# Tensor cores add numbers of f32 in their own way, which the kernels of the profile cuda_tc take as it is.
TENSOR_CORE = re.compile(r"^mma\.sync\.aligned\.m16n8k16\.row\.col\.f32\.(?:bf16\.bf16|f16\.f16)\.f32$")
NAMES_F32 = re.compile(r"\.f32\b|\.f32x2\b|\.f64\b")
CONSTANT = re.compile(r"\b0(?:[fF][0-9A-Fa-f]{8}|[dD][0-9A-Fa-f]{16})\b")


def instruction_problem(line, uses_tensor_core):
    """Says why one instruction of PTX is not exact, or returns None."""
    parts = re.sub(r"^@!?%p\d+\s+", "", line.strip()).split(None, 1)
    if not parts or not NAMES_F32.search(parts[0]) or parts[0].startswith("."):
        return None
    name, operands = parts[0], parts[1] if len(parts) > 1 else ""
    if ROUNDED.match(name) or EXACT.match(name):
        return None
    if uses_tensor_core and TENSOR_CORE.match(name):
        return None
    if CHOICE.match(name) and CONSTANT.search(operands):
        return None
    return f"'{line.strip()}' is not exact"


def code_of(ptx):
    """The instructions without what names the compiler's command line."""
    return [line.strip() for line in ptx.splitlines() if line.strip() and not line.strip().startswith("//")]


def kernels_of(ptx):
    """The code of each kernel by its name."""
    return {kernel.split("(", 1)[0].strip(): kernel for kernel in re.split(r"\.visible \.entry ", ptx)[1:]}


def ptx_problems(ptx, with_fmad):
    """Yields the name of a kernel, and what is wrong with it."""
    contracted = kernels_of(with_fmad)
    for title, kernel in kernels_of(ptx).items():
        for line in code_of(kernel):
            problem = instruction_problem(line, "RowsTensor" in title or "TensorAttention" in title)
            if problem:
                yield title, problem
        if code_of(kernel) != code_of(contracted[title]):
            yield title, "-fmad changes the code, so a product and a sum stand side by side without a name"
        if re.search("FewRows|ManyRows|TensorAttention", title) and "mma.sync" not in kernel:
            yield title, "there is no tensor-core instruction"


def log_problems(name, log):
    kernels = re.findall(r"Function properties for (\w+)\n\s*(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", log)
    registers = re.findall(r"Used (\d+) registers", log)
    if not kernels or len(kernels) != len(registers):
        yield f"{name}: ptxas reports {len(kernels)} kernels and {len(registers)} numbers of registers"
    for (title, stack, stores, loads), used in zip(kernels, registers):
        if int(stores) or int(loads):
            yield f"{name}: {title} spills {stores} bytes"
        if int(stack):
            yield f"{name}: {title} has {stack} bytes of local memory"
        most = MAX_WIDE_REGISTERS if "TensorAttention" in title else MAX_REGISTERS
        if int(used) > most:
            yield f"{name}: {title} uses {used} registers, at most {most}"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cubin", nargs="*", default=[])
    parser.add_argument("--planted", nargs=2)
    parser.add_argument("--ptx", nargs=3, action="append", default=[])
    args = parser.parse_args()
    if not args.ptx:
        print("check_device_code: skipped, there is no nvcc")
        return SKIPPED
    problems = []
    if args.planted:
        planted, with_fmad = (pathlib.Path(path).read_text() for path in args.planted)
        refused = {title for title, _ in ptx_problems(planted, with_fmad)}
        problems += [f"{title} is not refused" for title in kernels_of(planted) if title not in refused]
    for ptx, with_fmad, log in args.ptx:
        name = pathlib.Path(ptx).name
        found = ptx_problems(pathlib.Path(ptx).read_text(), pathlib.Path(with_fmad).read_text())
        problems += [f"{name}: {title}: {problem}" for title, problem in found]
        problems += log_problems(name, pathlib.Path(log).read_text())
    size = sum(pathlib.Path(cubin).stat().st_size for cubin in args.cubin)
    if size > MAX_CUBIN_BYTES:
        problems.append(f"the code has {size} bytes, at most {MAX_CUBIN_BYTES}")
    for problem in problems:
        print(problem)
    print(f"check_device_code: {len(args.ptx)} files, {size} bytes of device code, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
