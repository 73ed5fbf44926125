#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Predicts what a model would give on ranks that are not there: a model of the time of a pass, fitted to measured
passes.

Usage: lab/simulate_ranks.py measure MEASURED.json [--shapes A,B]         time passes, alone and on ranks
       lab/simulate_ranks.py fit MACHINE.json MEASURED.json...            fit to some shapes, compare with the others
       lab/simulate_ranks.py tell MACHINE.json --shape llama-70b --weights q4 [--latency-us 5 --link-gb 10]
       lab/simulate_ranks.py drafters MACHINE.json --shape llama-70b --division 8 1 --batch 8   ranks that draft
       lab/simulate_ranks.py plot MACHINE.json lab/scaling.svg    70B and 405B on 8 to 64 machines

A pass of `rows` rows takes several times for each layer of a rank. They are a fixed time, and the times to read the
shard's weights and to multiply them with all rows, which mostly overlap. There is a time for every number of a row that
is not in a product, and four exchanges, each a latency and its bytes. The output head and the hops between pipeline
stages are added. Where weights do not fit into memory, a pass takes at least the time to read the rest from disk. A
step of speculative decoding is one pass over a tree, and passes of a draft model for each of its levels. Its tokens
follow from the probabilities that the first, second and third most probable drafts are right. """

import argparse
import dataclasses
import heapq
import json
import math
import random
import subprocess
import sys


@dataclasses.dataclass(frozen=True)
class Shape:
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    ffn: int
    vocabulary: int

    def layer_weights(self, shards):
        """Weights of a layer at the shard that has most of them: attention heads are divided as wholes."""
        kv = self.hidden // self.heads * self.kv_heads
        heads = -(-self.kv_heads // shards) / self.kv_heads if self.kv_heads > shards else 1 / shards
        return self.hidden * ((self.hidden + 2 * kv) * heads + (self.hidden + 3 * self.ffn) / shards)

    def weights(self):
        return self.layers * self.layer_weights(1) + self.hidden * self.vocabulary


# The first ones belong to `bench --shape`.
SHAPES = {
    "llama-25m": Shape(384, 7, 6, 6, 1024, 32000),
    "llama-68m": Shape(768, 2, 12, 12, 3072, 32000),
    "llama-160m": Shape(768, 12, 12, 12, 3072, 32000),
    "smollm2-135m": Shape(576, 30, 9, 3, 1536, 49152),
    "llama-1b": Shape(2048, 22, 32, 4, 5632, 32000),
    "llama-3.2-1b": Shape(2048, 16, 32, 8, 8192, 128256),
    "llama-8b": Shape(4096, 32, 32, 8, 14336, 128256),
    "llama-70b": Shape(8192, 80, 64, 8, 28672, 128256),
    "llama-405b": Shape(16384, 126, 128, 8, 53248, 128256),
}
WEIGHT_BYTES = {"bf16": 2.0, "q8_0": 34 / 32, "q4": 18 / 32}
DRAFT_SHAPE, DRAFT_WEIGHTS = "llama-3.2-1b", "q4"
OVERLAP = 3  # 1: reading and multiplying follow one another; infinite: the shorter one costs nothing
FLOAT = 4  # bytes of a number that ranks exchange


@dataclasses.dataclass
class Machine:
    """One rank and its link. Times are in seconds."""
    read_rate: float = 2e10      # bytes of weights per second
    row_time: float = 2e-12      # per byte of weights and row, where products take longer than reading
    layer_time: float = 1e-5     # per layer, whatever its size
    number_time: float = 1e-9    # per number of a row between products
    latency: float = 2e-6        # of an exchange
    link_rate: float = 1e10      # bytes per second
    disk_rate: float = 2e9       # bytes per second
    resident: float = 1.0        # share of the weights that stay in memory


def matrix_time(machine, weight_bytes, rows):
    """A norm between the longer of two times and their sum."""
    read, multiply = 1 / machine.read_rate, rows * machine.row_time
    return weight_bytes * (read ** OVERLAP + multiply ** OVERLAP) ** (1 / OVERLAP)


def pass_time(machine, shape, weights, rows, shards=1, stages=1):
    """Seconds of one pass over `rows` rows that all want logits, computed in one piece."""
    size = WEIGHT_BYTES[weights]
    exchanged = (shards - 1) / shards * FLOAT * rows
    layer = machine.layer_time + matrix_time(machine, shape.layer_weights(shards) * size, rows)
    layer += rows * machine.number_time * (shape.hidden + shape.ffn / shards)
    if shards > 1:
        layer += 4 * machine.latency + exchanged * (3 * shape.hidden + shape.ffn) / machine.link_rate
    head = matrix_time(machine, shape.vocabulary * shape.hidden * size / shards, rows)
    head += exchanged * shape.vocabulary / machine.link_rate + (machine.latency if shards > 1 else 0)
    hops = (stages - 1) * (machine.latency + rows * shape.hidden * FLOAT / machine.link_rate)
    disk = (1 - machine.resident) * shape.weights() * size / (shards * stages) / machine.disk_rate
    return max(shape.layers * layer + head + hops, disk)


def tree(nodes, chances):
    """Tokens of a step and levels of the best tree of so many drafted nodes; `chances` are the probabilities that the
    first, second ... child of a node is right."""
    open_nodes = [(-chance, 1) for chance in chances]
    heapq.heapify(open_nodes)
    tokens, depth = 1.0, 0
    for _ in range(nodes):
        chance, level = heapq.heappop(open_nodes)
        tokens -= chance
        depth = max(depth, level)
        for child in chances:
            heapq.heappush(open_nodes, (chance * child, level + 1))
    return tokens, depth


def tokens_per_second(machine, shape, weights, division, nodes, chances):
    """`nodes` drafted nodes; 0: plain decoding."""
    tokens, depth = tree(nodes, chances)
    drafting = dataclasses.replace(machine, resident=1.0)
    draft = pass_time(drafting, SHAPES[DRAFT_SHAPE], DRAFT_WEIGHTS, max(1, nodes // max(1, depth)))
    return tokens / (pass_time(machine, shape, weights, 1 + nodes, *division) + depth * draft)


@dataclasses.dataclass(frozen=True)
class Batch:
    """Sequences that draft chains with a model of their own."""
    sequences: int
    nodes: int
    draft_shape: str
    draft_weights: str


def batch_speeds(machine, shape, weights, division, batch, draft_ranks, chance):
    """Tokens per second of the batch, when drafts and passes follow one another and when the halves take turns."""
    tokens, depth = tree(batch.nodes, [chance])
    ranks = max(1, draft_ranks)

    def times(sequences):
        verify = pass_time(machine, shape, weights, sequences * (1 + batch.nodes), *division)
        draft = pass_time(machine, SHAPES[batch.draft_shape], batch.draft_weights, -(-sequences // ranks))
        return verify, depth * draft + (2 * machine.latency if draft_ranks else 0)

    in_order = batch.sequences * tokens / sum(times(batch.sequences))
    half = -(-batch.sequences // 2)
    in_turns = half * tokens / max(times(half)) if draft_ranks and half < batch.sequences else 0.0
    return in_order, in_turns


def drafters(args):
    """Every rank, of the target and of the drafts, is one machine."""
    shape, machine = shape_of(args.shape), machine_of(args)
    batch = Batch(args.batch, args.nodes, args.draft_shape, args.draft_weights)
    print("| draft ranks | one after the other | in turns |\n|---|---|---|")
    for ranks in args.draft_ranks:
        in_order, in_turns = batch_speeds(machine, shape, args.weights, args.division, batch, ranks, args.chances[0])
        print(f"| {ranks} | {in_order:.1f} | {f'{in_turns:.1f}' if in_turns else '-'} |")


def measure(args):
    """The least times of rounds in which row counts take turns, because other programs only ever add to a time."""
    results = []
    for shape in args.shapes.split(","):
        for shards, stages in ((1, 1), (2, 1), (1, 2)):
            words = ["bench", "--shape", shape, "--weights", args.weights, "--rows", "1,2,4,8,16,32", "--context", "64",
                     "--ctx", "256", "--runs", "8", "--json", "--threads", "1", "--tensor-parallel", str(shards),
                     "--pipeline-parallel", str(stages)]
            ranks = shards * stages
            start = ["mpirun", "--bind-to", "core", "--oversubscribe", "--allow-run-as-root", "-n", str(ranks)] if ranks > 1 else []
            done = subprocess.run([*start, args.outrider, *words], capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(f"{' '.join(words)}: {done.stderr.strip()}")
            for row in json.loads(done.stdout)["rows"]:
                results.append({"shape": shape, "weights": args.weights, "shards": shards, "stages": stages,
                                "rows": row["rows"], "ms": row["min_ms"]})
            print(f"{shape} {shards}x{stages}", file=sys.stderr)
    write_json(args.measured, results)


def shape_of(name):
    name, _, layers = name.partition("@")
    return dataclasses.replace(SHAPES[name], layers=int(layers)) if layers else SHAPES[name]


def share_on_disk(case):
    weights = shape_of(case["shape"]).weights() * WEIGHT_BYTES[case["weights"]]
    return case.get("streamed_bytes", 0) / weights


def error(machine, case):
    """The logarithm of predicted by measured time. The ranks of a case with weights on disk share one disk."""
    if "streamed_bytes" in case:
        machine = dataclasses.replace(machine, resident=1 - share_on_disk(case),
                                      disk_rate=case["disk_rate"] / (case["shards"] * case["stages"]))
    seconds = pass_time(machine, shape_of(case["shape"]), case["weights"], case["rows"], case["shards"], case["stages"])
    return math.log(seconds / (case["ms"] * 1e-3))


def fitted(cases):
    """The machine with the least squares of logarithms, by a random walk with shrinking steps from a fixed seed."""
    draw = random.Random(1)
    names = ["read_rate", "row_time", "layer_time", "number_time", "latency", "link_rate"]

    def loss(machine):
        return sum(error(machine, case) ** 2 for case in cases)

    best = Machine()
    least = loss(best)
    for turn in range(20000):
        width = 0.5 * 0.9997 ** turn
        steps = {name: getattr(best, name) * math.exp(draw.gauss(0, width)) for name in draw.sample(names, 2)}
        other = dataclasses.replace(best, **steps)
        if (found := loss(other)) < least:
            best, least = other, found
    return best


def fit(args):
    """Some shapes decide the machine; passes of the others are compared with it."""
    least = {}  # time of a configuration, of all files
    for case in (case for path in args.measured for case in read_json(path)):
        key = tuple(value for name, value in case.items() if name != "ms")
        if key not in least or case["ms"] < least[key]["ms"]:
            least[key] = case
    cases = list(least.values())
    used = [case for case in cases if case["shape"] in args.fit_shapes.split(",")]
    machine = fitted(used)
    write_json(args.machine, dataclasses.asdict(machine))
    print("| shape | on disk | shards x stages | rows | measured ms | predicted ms | error |\n" + "|---" * 7 + "|")
    others = [case for case in cases if case not in used]
    for case in others:
        by = math.exp(error(machine, case))
        print(f"| {case['shape']} | {100 * share_on_disk(case):.0f} % | {case['shards']} x {case['stages']} | {case['rows']} | {case['ms']:.2f} "
              f"| {case['ms'] * by:.2f} | {100 * (by - 1):+.0f} % |")
    near = sum(abs(math.exp(error(machine, case)) - 1) <= 0.15 for case in others)
    print(f"\n{near} of {len(others)} within 15 %")


def machine_of(args):
    machine = Machine(**read_json(args.machine))
    return dataclasses.replace(machine, latency=args.latency_us * 1e-6, link_rate=args.link_gb * 1e9,
                               disk_rate=args.disk_gb * 1e9, resident=args.resident,
                               row_time=machine.row_time / args.cores, number_time=machine.number_time / args.cores,
                               **({"read_rate": args.read_gb * 1e9} if args.read_gb else {}))


DIVISIONS = ((1, 1), (8, 1), (8, 2), (16, 1), (8, 4), (32, 1), (8, 8), (64, 1))
# Drafted nodes, and the number of different children that a node may have.
STEPS = {"plain": (0, 1), "chain of 4": (4, 1), "tree of 8": (8, 3), "tree of 24": (24, 3)}


def speeds(machine, shape, weights, division, chances):
    """Tokens per second by the name of the way to draft."""
    return {name: tokens_per_second(machine, shape, weights, division, nodes, chances[:children])
            for name, (nodes, children) in STEPS.items()}


def tell(args):
    machine = machine_of(args)
    print(f"| tensor x pipeline parallel | {' | '.join(STEPS)} |\n|---{'|---' * len(STEPS)}|")
    for division in DIVISIONS:
        by_name = speeds(machine, SHAPES[args.shape], args.weights, division, args.chances)
        print(f"| {division[0]} x {division[1]} | " + " | ".join(f"{speed:.2f}" for speed in by_name.values()) + " |")


def plot(args):
    machine = machine_of(args)
    parts, width, height = [], 360, 240
    for place, name in enumerate(("llama-70b", "llama-405b")):
        counts = (8, 16, 32, 64)
        lines = {step: [speeds(machine, SHAPES[name], args.weights, (count, 1), args.chances)[step] for count in counts]
                 for step in STEPS}
        top = max(max(line) for line in lines.values())
        parts.append(f'<g transform="translate({60 + place * (width + 80)},40)">'
                     f'<text y="-14">{name}, {args.weights}, tokens per second by machines</text>'
                     f'<path d="M0,0V{height}H{width}" fill="none" stroke="#888"/>')
        for i, count in enumerate(counts):
            parts.append(f'<text x="{i * width / 3:.0f}" y="{height + 18}" text-anchor="middle">{count}</text>')
        for colour, (step, line) in zip(("#888888", "#0969da", "#bf8700", "#1a7f37"), lines.items()):
            points = " ".join(f"{i * width / 3:.0f},{height * (1 - speed / top):.1f}" for i, speed in enumerate(line))
            parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
            parts.append(f'<text x="{width + 4}" y="{height * (1 - line[-1] / top) + 4:.0f}" fill="{colour}">{step}</text>')
        parts.append(f'<text x="-6" y="6" text-anchor="end">{top:.1f}</text></g>')
    with open(args.picture, "w", encoding="utf-8") as file:
        file.write('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 960 320" font-family="sans-serif" font-size="12">'
                   f'<rect width="960" height="320" fill="#ffffff"/>{"".join(parts)}</svg>\n')


def read_json(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def write_json(path, value):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1)
        file.write("\n")


def add_machine(parser):
    parser.add_argument("machine")
    parser.add_argument("--weights", default="q4", choices=WEIGHT_BYTES)
    parser.add_argument("--latency-us", type=float, default=10, help="of an exchange between machines")
    parser.add_argument("--link-gb", type=float, default=3, help="GB/s of a link")
    parser.add_argument("--disk-gb", type=float, default=2, help="GB/s of a machine's disk")
    parser.add_argument("--resident", type=float, default=1, help="share of the weights that stay in memory")
    parser.add_argument("--read-gb", type=float, help="GB/s at which a machine reads weights; without it the fitted rate")
    parser.add_argument("--cores", type=int, default=1, help="cores of a machine, each as fast as the measured one")
    parser.add_argument("--chances", type=lambda text: [float(part) for part in text.split(",")], default=[0.7, 0.12, 0.05],
                        help="of the first, second ... most probable draft to be right")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("measure")
    command.add_argument("measured")
    command.add_argument("--outrider", default="build/release/bin/outrider")
    command.add_argument("--shapes", default="llama-160m,smollm2-135m,llama-1b@6,llama-3.2-1b@4")
    command.add_argument("--weights", default="q8_0", choices=WEIGHT_BYTES)
    command.set_defaults(run=measure)
    command = commands.add_parser("fit")
    command.add_argument("machine")
    command.add_argument("measured", nargs="+")
    command.add_argument("--fit-shapes", default="llama-160m,llama-1b@6")
    command.set_defaults(run=fit)
    command = commands.add_parser("tell")
    add_machine(command)
    command.add_argument("--shape", required=True, choices=SHAPES)
    command.set_defaults(run=tell)
    command = commands.add_parser("drafters")
    add_machine(command)
    command.add_argument("--shape", required=True, help="of the target")
    command.add_argument("--division", type=int, nargs=2, default=(1, 1), help="shards and stages of the target")
    command.add_argument("--batch", type=int, default=8, help="sequences")
    command.add_argument("--nodes", type=int, default=4, help="of a chain")
    command.add_argument("--draft-shape", default=DRAFT_SHAPE, choices=SHAPES)
    command.add_argument("--draft-weights", default=DRAFT_WEIGHTS, choices=WEIGHT_BYTES)
    command.add_argument("--draft-ranks", type=int, nargs="+", default=[0, 1, 2, 4, 8])
    command.set_defaults(run=drafters)
    command = commands.add_parser("plot")
    add_machine(command)
    command.add_argument("picture")
    command.set_defaults(run=plot)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
