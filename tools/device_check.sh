#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Shows on a machine with a GPU that the GPU has the bits of the CPU, and how fast it is. It runs in a checkout that is
# built, or in the bundle that ./dev device makes, and prints a table last. A failed part ends it with 1. Where there is no
# usable GPU, it says so, does with the emulation what needs no GPU, and ends with 3.
# Usage: tools/device_check.sh [PART...]   PART: machine bits lossless sanitizer speed profile (default: all)
#   BIN      folder of the programs (bin, or build/release/bin)
#   OUT      folder for everything that was measured (device_check)
#   SHAPES   models and types of the speeds: "llama-1b:q4 llama-8b:q4 llama-8b:q8_0"
#   LLAMA_BENCH, LLAMA_MODELS   llama.cpp's llama-bench with CUDA (BIN/llama-bench where it is in the bundle), and a folder with
#            SHAPE-TYPE.gguf of the same shapes (bench/make_random_gguf.py)
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

BIN=${BIN:-$([ -d bin ] && echo bin || echo build/release/bin)}
OUT=${OUT:-device_check}
SHAPES=${SHAPES:-llama-1b:q4 llama-8b:q4 llama-8b:q8_0}
mkdir -p "$OUT"
[ -n "${LLAMA_BENCH:-}" ] || ! [ -x "$BIN/llama-bench" ] || LLAMA_BENCH=$BIN/llama-bench
failed=0
start=$SECONDS

say() { printf '\n== %s (%d s)\n' "$*" $((SECONDS - start)); }

# Programs of a bundle bring their libraries, and the loader for them; the driver's is this machine's.
run() {  # PROGRAM [argument...]
  local program=$1
  shift
  if [ -x lib/ld-linux-x86-64.so.2 ]; then
    lib/ld-linux-x86-64.so.2 --library-path "lib:$(driver_folder)" "$BIN/$program" "$@"
  else
    "$BIN/$program" "$@"
  fi
}

driver_folder() { dirname "$(ldconfig -p 2>/dev/null | awk '/libcuda\.so\.1 .*x86-64/ {print $NF; exit}')" 2>/dev/null; }

part() {  # NAME COMMAND...: notes whether it failed
  local name=$1
  shift
  if "$@" > "$OUT/$name.txt" 2> "$OUT/$name.err"; then
    echo "ok      $name" | tee -a "$OUT/parts.txt"
  else
    echo "FAILED  $name: $(tail -n 1 "$OUT/$name.err")" | tee -a "$OUT/parts.txt"
    tail -n 20 "$OUT/$name.txt"
    failed=1
  fi
}

machine() {
  say "machine"
  part nvidia_smi nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm --format=csv
  cat "$OUT/nvidia_smi.txt"
  part rates run device_check --gtest_filter='*.Rates'
  grep -E '^(gpu|capability|copy|launch)' "$OUT/rates.txt"
}

# Parts of a machine without a GPU.
emulated() {
  say "NO GPU: what follows runs in the emulation, and shows nothing of a GPU"
  local small=(verify-lossless models/outrider-small --device emulated --limit 2 --max-tokens 24 --temperature 0.7)
  part emulated_text run outrider "${small[@]}" --compare-kernels --speculative ngram
  cat "$OUT/emulated_text.txt"
  for method in ngram "eagle3,speculative_model=models/outrider-eagle3"; do
    part "emulated_${method%%,*}" run outrider "${small[@]}" --speculative "$method"
    cat "$OUT/emulated_${method%%,*}.txt"
  done
}

bits() {
  say "kernels beside their emulation, passes of all families and types"
  part kernels run device_check --gtest_filter='*.KernelsHaveTheBitsOfTheirEmulation'
  part tensor_cores run device_check --gtest_filter='*.TensorCoresHaveTheBitsOfTheirEmulation'
  grep -E '^all:|  [1-9][0-9]* word' "$OUT/kernels.txt"
  part same_text run outrider verify-lossless models/outrider-small --compare-kernels --device cuda \
    --speculative ngram --limit 8 --max-tokens 64 --temperature 0.7
  cat "$OUT/same_text.txt"
}

lossless() {
  say "the text with drafts is the text without"
  local draft="speculative_model=models/outrider-draft"
  for method in "ngram,max_draft_len=5,tree=dynamic" "suffix,max_draft_len=8" lookahead "draft_target,$draft" \
    "draft_target,$draft,max_draft_len=6,dynamic_tree_max_topK=3,max_total_draft_tokens=24" "early_exit,exit_layer=2" \
    "eagle3,speculative_model=models/outrider-eagle3" "medusa,speculative_model=models/outrider-medusa" \
    "mtp,speculative_model=models/outrider-mtp" "moa,speculative_model=models/outrider-moa"; do
    for page in 1 16; do
      part "lossless_${method%%,*}_page_$page" run outrider verify-lossless models/outrider-small --device cuda \
        --speculative "$method" --page-size "$page" --limit 8 --max-tokens 64 --temperature 0.7 --json
      cat "$OUT/lossless_${method%%,*}_page_$page.txt" >> "$OUT/lossless.jsonl"
    done
  done
}

sanitizer() {
  say "compute-sanitizer"
  local tool=${COMPUTE_SANITIZER:-$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)}
  if [ ! -x "$tool" ]; then echo "not here: compute-sanitizer"; return; fi
  for check in memcheck racecheck initcheck; do
    local command=("$BIN/device_check")
    [ -x lib/ld-linux-x86-64.so.2 ] && command=(lib/ld-linux-x86-64.so.2 --library-path "lib:$(driver_folder)" "$BIN/device_check")
    part "sanitizer_$check" "$tool" --tool "$check" --error-exitcode 9 "${command[@]}" --gtest_filter='*.OnePass'
  done
}

# llama.cpp over a file of the same shape, in turn with this program.
peer() {  # SHAPE TYPE
  local file=${LLAMA_MODELS:-models}/$1-$2.gguf
  if [ ! -f "$file" ]; then echo "not here: $file, for llama-bench"; return; fi
  declare -f run driver_folder > "$OUT/outrider"
  printf '#!/usr/bin/env bash\nBIN=%q\n%s\nrun outrider "$@"\n' "$BIN" "$(cat "$OUT/outrider")" > "$OUT/outrider"
  chmod +x "$OUT/outrider"
  part "llama_$1_$2" bench/compare_llama.py "$file" --device cuda --llama-bench "$LLAMA_BENCH" --outrider "$OUT/outrider" \
    --rows 1,4,8,16,32,64 --prompts 512,2048 --context 512 --rounds 2 --repetitions 10 --json "$OUT/llama_$1_$2.json"
  cat "$OUT/llama_$1_$2.txt"
}

speed() {
  say "speeds"
  for one in $SHAPES; do
    local shape=${one%%:*} type=${one##*:}
    for context in 512 4096; do
      part "rows_${shape}_${type}_$context" run outrider bench rows --shape "$shape" --weights "$type" --device cuda \
        --rows 1,4,8,16,32,64 --context "$context" --ctx 8192 --runs 20 --json
    done
    part "prompts_${shape}_$type" run outrider bench prompts --shape "$shape" --weights "$type" --device cuda \
      --prompt-lengths 512,2048 --json
    [ -z "${LLAMA_BENCH:-}" ] || peer "$shape" "$type"
  done
  part profile_of_pass run outrider bench rows --shape llama-1b --weights q4 --device cuda --rows 1,8 --runs 5 --profile
}

profile() {
  say "ncu"
  local tool=${NCU:-$(command -v ncu || echo /usr/local/cuda/bin/ncu)}
  if [ ! -x "$tool" ]; then echo "not here: ncu"; return; fi
  part ncu "$tool" --clock-control none --launch-skip 300 --launch-count 12 --csv \
    --metrics gpu__time_duration.sum,dram__throughput.avg.pct_of_peak_sustained_elapsed,sm__inst_executed.avg.pct_of_peak_sustained_elapsed \
    "$BIN/outrider" bench rows --shape llama-8b@2 --weights q4 --device cuda --rows 1 --runs 3
}

table() {
  say "table"
  OUT=$OUT python3 - <<'PYTHON' | tee "$OUT/table.txt"
import json, os, pathlib, re, statistics

out = pathlib.Path(os.environ["OUT"])
text = lambda name: (out / name).read_text() if (out / name).exists() else ""
found = re.search(r"copy_gb_per_s: (\d+)", text("rates.txt"))
copy = float(found.group(1)) if found else None
print(text("rates.txt").partition("gpu: ")[2].splitlines()[0] if found else "no GPU", f"copies {copy} GB/s" if copy else "")

def loaded(path):
    try:
        return json.loads(path.read_text().strip().splitlines()[-1])
    except (ValueError, IndexError, OSError):
        return None

def peers(shape, kind, part):
    """Milliseconds of llama.cpp by rows (ms) or by tokens of a prompt (prompt_ms)."""
    measured = loaded(out / f"llama_{shape}_{kind}.json")
    rounds = measured[f"llama_{part}"] if measured else []
    return {int(count): statistics.median(one[count] for one in rounds) for count in (rounds[0] if rounds else ())}

print(f"{'':34} {'floor':>10} {'ours':>10} {'of floor':>9} {'llama.cpp':>10} {'ratio':>6}")
def line(name, floor, ours, peer, higher_is_better):
    part = (ours / floor if higher_is_better else floor / ours) if floor and ours else None
    ratio = (ours / peer if higher_is_better else peer / ours) if peer and ours else None
    shown = [f"{x:10.2f}" if x else f"{'':10}" for x in (floor, ours)]
    print(f"{name:34} {shown[0]} {shown[1]} {f'{part:9.0%}' if part else ' ' * 9} "
          f"{f'{peer:10.2f}' if peer else ' ' * 10} {f'{ratio:6.2f}' if ratio else ''}")

for path in sorted(out.glob("rows_*.txt")):
    bench = loaded(path)
    if not bench:
        continue
    _, shape, *kind, context = path.stem.split("_")
    kind = "_".join(kind)
    peer = peers(shape, kind, "ms")
    for row in bench["rows"]:
        floor = bench["streamed_bytes"] / copy / 1e6 if copy else None
        theirs = peer.get(row["rows"]) if context == "512" else None
        line(f"{shape} {kind}, {row['rows']} rows, {context}, ms", floor, row["median_ms"],
             theirs, False)
for path in sorted(out.glob("prompts_*.txt")):
    bench = loaded(path)
    _, shape, *kind = path.stem.split("_")
    for prompt in bench["prompts"] if bench else []:
        theirs = peers(shape, "_".join(kind), "prompt_ms").get(prompt["tokens"])
        line(f"{shape} {'_'.join(kind)}, prompt of {prompt['tokens']}, tok/s", None, prompt["tokens_per_second"],
             1e3 * prompt["tokens"] / theirs if theirs else None, True)
lossless = [json.loads(one) for one in text("lossless.jsonl").splitlines() if one.startswith("{")]
if lossless:
    print(f"text with and without drafts identical: {sum(one['identical'] for one in lossless)} of {len(lossless)} runs, "
          f"{sum(one['tokens'] for one in lossless)} tokens, {sum(one['accepted'] for one in lossless)} accepted drafts")
print(text("kernels.txt").partition("all: ")[2].splitlines()[0] if "all: " in text("kernels.txt") else "kernels: not compared")
print(text("parts.txt").count("FAILED"), "parts failed")
PYTHON
}

rm -f "$OUT"/*.txt "$OUT"/*.err "$OUT/lossless.jsonl"
if ! run outrider generate models/outrider-small -p a --max-tokens 1 --device cuda > /dev/null 2> "$OUT/gpu.err"; then
  echo "device_check: no usable GPU: $(tail -n 1 "$OUT/gpu.err")"
  emulated
  echo "device_check: NO GPU WAS CHECKED: $(tail -n 1 "$OUT/gpu.err")"
  exit $((failed == 0 ? 3 : 1))
fi
[ $# -gt 0 ] || set -- machine bits lossless sanitizer speed profile
for name in "$@"; do
  case $name in
    machine | bits | lossless | sanitizer | speed | profile) $name ;;
    *) echo "device_check: expected machine, bits, lossless, sanitizer, speed or profile, found '$name'" >&2; exit 2 ;;
  esac
done
table
[ $failed -eq 0 ] || exit 1
if grep -q '^ok *kernels$' "$OUT/parts.txt" && [ -n "$(ls "$OUT"/lossless_*.txt 2>/dev/null)" ]; then
  echo "this GPU has the bits of the CPU: add {$(sed -n 's/^capability: \([0-9]*\)\.\([0-9]*\)$/\1, \2/p' "$OUT/rates.txt")} to" \
    "kCheckedCapabilities in src/open/device_choice.cc"
fi
