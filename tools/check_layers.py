#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when a source folder includes a folder of a higher rank, or a room includes a room that comes after it. It also
fails when files include one another in a ring, a heavy header is read where it is not needed, or two types have one name
in one namespace. It fails when numbers that decide about text come from functions of the C library, which differ between
systems, and not from base/portable_math.h. Usage: tools/check_layers.py"""

import pathlib
import re
import sys

# The folders of each rank may include the folders of lower ranks.
RANKS = [
    {"asio", "base"},
    {"config", "platform", "web", "tokenizer"},
    {"chat_template", "corpus", "device", "tensor", "grammar", "ranks"},
    {"formats", "hub", "kernels"},
    {"device_kernels", "kv", "quantize", "sampling"},
    {"models", "speculation"},
    {"draft_heads"},
    {"drafters"},
    {"engine"},
    {"open"},
    {"remote"},
    {"capi", "server", "training"},
    {"cli"},
]
# The rooms of a folder, in the same way: a room may include the rooms that stand before it. The folder's own files may
# include its rooms and be included by them, as long as no ring of files comes of it. "*" is every room that is not named.
ROOMS = {
    "chat_template": [{"jinja"}],
    "config": [{"foreign"}],
    "cli": [{"reports", "serving"}, {"proof"}, {"commands"}, {"program"}],
    "device_kernels": [{"simt"}, {"products"}, {"rows"}, {"attention", "choice", "experts", "states"}, {"emulated"}],
    "draft_heads": [{"vocabulary"}, {"*"}],
    "drafters": [{"*"}, {"ranked"}, {"combined"}],
    "engine": [{"step"}],
    "formats": [{"gguf", "quantized", "torch"}, {"hf", "kinds"}, {"adapters"}],
    "grammar": [{"json_schema"}],
    "hub": [{"transfer"}, {"remote"}, {"local"}],
    "kernels": [{"blocks", "reference", "simd"}, {"avx2", "avx512", "neon"}, {"avx2_portable", "avx2_vnni", "avx512_vnni", "avx512_bf16", "i8mm"}, {"amx", "bf16"}],
    "kv": [{"disk"}],
    "models": [{"sharding"}, {"weights"}, {"backend"}, {"blocks"}, {"team"}],
    "models/backend": [{"host"}, {"device"}, {"*"}],
    "models/blocks": [{"dense_mlp", "low_rank"}, {"*"}],
    "ranks": [{"mpi"}],
    "open": [{"drafters"}],
    "remote": [{"protocol"}, {"session"}, {"client"}],
    "server": [{"access", "api", "page"}, {"telemetry"}, {"calls", "fleet"}, {"batch"}, {"http"}],
    "server/api": [{"tools"}, {"tool_calls"}, {"requests"}, {"answers"}, {"ollama"}],
    "speculation": [{"tree"}, {"acceptance", "policy"}],
    "training": [{"core"}, {"head_data", "lm"}, {"evaluation"}, {"heads"}, {"job"}],
    "training/heads": [{"vocabulary"}],
}
# Rooms that follow addresses of this machine, and the only folders that may include them.
PRIVATE = {"models/backend/host": ("models/backend", "models/blocks")}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
# Heavy headers and the folders that may include them.
HEAVY = {"curl/": {"hub"}, "torch/": {"training"}, "CLI/": {"cli", "training"}, "boost/math/": {"cli"}, "boost/": {"asio", "remote", "server"},
         "nlohmann/": {"cli", "config", "grammar", "server", "training"}}
HEAVY_INCLUDE = re.compile(r"^\s*#\s*include\s+<((?:curl|torch|CLI|nlohmann|boost)/[^>]+)>", re.MULTILINE)
TEST_HEADERS = {"fake_head.h", "gguf_head_test_data.h", "mortal_rank.h", "recurrent_test_data.h", "separate_backend.h", "test_corpus.h"}  # headers that only tests include
MODULE_SUFFIXES = {".h", ".cc"}
# Folders whose numbers decide about text. The reference is the oracle of the others and stays apart.
TEXT_FOLDERS = ("base/", "draft_heads/", "drafters/", "kernels/", "models/", "sampling/", "speculation/acceptance/", "speculation/tree/")
ORACLE = "kernels/reference/"
LIBRARY_FUNCTION = re.compile(r"\bstd::(?:exp|exp2|expm1|log|log2|log1p|pow|sin|cos|tan|tanh|erf|erfc)f?\(")


# A definition of a type does not stand in these. The second pattern opens, closes or defines a scope.
NO_CODE = re.compile(r"""//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)'(?:\\.|[^'\\\n])+'|^[ \t]*\#(?:\\\n|[^\n])*""",
                     re.DOTALL | re.MULTILINE)
SCOPE = re.compile(r"""\bnamespace\s+(?P<namespace>[\w:]*)\s*\{
                    |\b(?:enum\s+class|enum|class|struct|union)\s+(?:alignas\([^)]*\)\s*)?(?P<type>\w+)\s*(?:final\s*)?(?::(?!:)[^;{]*)?\{
                    |[{}]""", re.VERBOSE)


def types_of(text):
    """Yields the names of the types that the text defines in named namespaces, each with its namespaces."""
    scopes = []  # of each open brace: a namespace, "" for an unnamed one, or None for anything else
    for match in SCOPE.finditer(NO_CODE.sub(" ", text)):
        if match.group() == "}":
            if scopes:
                scopes.pop()
            continue
        name = match.group("type")
        if name and all(scopes):
            yield "::".join([*scopes, name])
        scopes.append(match.group("namespace"))


def type_problems(texts):
    """`texts` are the contents of files by name; yields the types that two of them define."""
    places = {}
    for name, text in texts.items():
        for found in set(types_of(text)):
            places.setdefault(found, []).append(name)
    for found, names in sorted(places.items()):
        if len(names) > 1:
            yield f"type {found} is defined in {' and in '.join(map(str, names))}"


def ranks_of(order):
    return {name: rank for rank, names in enumerate(order) for name in names}


def rank_of(name, ranks):
    return ranks.get(name, ranks.get("*"))


def layer_problems(folder, include):
    """`folder` and `include` are paths from src/; yields what is wrong with the include."""
    source, target = folder.parts, pathlib.PurePosixPath(include).parts[:-1]
    readers = PRIVATE.get("/".join(target))
    if readers and not any(folder.is_relative_to(reader) for reader in readers):
        yield f"'{folder}' may not include '{include}', which is private to {' and '.join(readers)}"
    common = 0
    while common < min(len(source), len(target)) and source[common] == target[common]:
        common += 1
    parent = "/".join(source[:common])
    order = ROOMS.get(parent, []) if parent else RANKS
    if common == len(target):
        return
    if common == len(source):
        if rank_of(target[common], ranks_of(order)) is None:
            yield f"'{parent or 'src'}' has no room '{target[common]}' for '{include}'"
        return
    ranks = ranks_of(order)
    names = source[common], target[common]
    for name in names:
        if rank_of(name, ranks) is None:
            yield f"'{'/'.join(filter(None, (parent, name)))}' has no rank"
            return
    own, other = (rank_of(name, ranks) for name in names)
    if other >= own:
        yield f"'{names[0]}' (rank {own}) may not include '{names[1]}' (rank {other}): {include}"


def rings(graph):
    """The strongly connected components of two modules or more, each as one shortest ring through its first module."""
    components = []
    index, low, stack, on_stack = {}, {}, [], set()

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        on_stack.add(node)
        for target in graph.get(node, ()):
            if target not in index:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in on_stack:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            component = set(stack[stack.index(node):])
            del stack[stack.index(node):]
            on_stack.difference_update(component)
            if len(component) > 1:
                components.append(component)

    sys.setrecursionlimit(10000)
    for node in sorted(graph):
        if node not in index:
            visit(node)
    return [(ring_through(min(component), component, graph), len(component)) for component in components]


def ring_through(start, component, graph):
    came_from = {}
    frontier = [start]
    while frontier:
        node = frontier.pop(0)
        for target in sorted(graph[node]):
            if target == start:
                path = [start]
                while node != start:
                    path.append(node)
                    node = came_from[node]
                return [start] + path[:0:-1] + [start]
            if target in component and target not in came_from:
                came_from[target] = node
                frontier.append(target)
    raise AssertionError("a component has a ring through each of its modules")


def main() -> int:
    root = pathlib.Path(__file__).resolve().parent.parent
    src = root / "src"
    problems, graph = [], {}
    files = sorted(path for path in src.rglob("*") if path.suffix in {".h", ".cc", ".inc"})
    for path in files:
        name = path.relative_to(root)
        text = path.read_text(encoding="utf-8")
        module = path.relative_to(src).with_suffix("").as_posix()
        for include in INCLUDE.findall(text):
            if include.startswith("outrider/"):
                continue
            if not (src / include).is_file():
                problems.append(f"{name}: '{include}' is not spelled from src/")
                continue
            problems += [f"{name}: {problem}" for problem in layer_problems(path.parent.relative_to(src), include)]
            target = pathlib.PurePosixPath(include).with_suffix("").as_posix()
            if path.suffix in MODULE_SUFFIXES and target != module:
                graph.setdefault(module, set()).add(target)
        place = path.relative_to(src).as_posix()
        if place.startswith(TEXT_FOLDERS) and not place.startswith(ORACLE) and not path.stem.endswith(("_test", "_test_data")):
            problems += [f"{name}: {call}...) is not of base/portable_math.h" for call in LIBRARY_FUNCTION.findall(text)]
        folder = path.relative_to(src).parts[0]
        for include in HEAVY_INCLUDE.findall(text):
            allowed = next(folders for prefix, folders in HEAVY.items() if include.startswith(prefix))
            if folder not in allowed and not path.stem.endswith(("_test", "_test_data")) and path.name not in TEST_HEADERS:
                problems.append(f"{name}: may not include <{include}>")
    for path in sorted((root / "include").rglob("*.h")):
        for include in INCLUDE.findall(path.read_text(encoding="utf-8")):
            if not include.startswith("outrider/"):
                problems.append(f"{path.relative_to(root)}: a public header includes '{include}'")
    code = [path for folder in ("src", "tests", "include") for path in sorted((root / folder).rglob("*"))]
    problems += type_problems({path.relative_to(root): path.read_text(encoding="utf-8")
                               for path in code if path.suffix in MODULE_SUFFIXES})
    for ring, count in rings(graph):
        problems.append(f"ring of {count} files: {' -> '.join(ring)}")
    for problem in problems:
        print(problem)
    print(f"check_layers: {len(files)} files, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
