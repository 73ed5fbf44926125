#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what the tarball of a release is made of, as SPDX 2.3 in JSON: the libraries inside with their Debian packages,
the headers and scripts that are compiled in, and the models. It checks the result and fails where a part is missing.

Usage: bill_of_materials.py TARBALL OUTPUT     (bill_of_materials.py --check OUTPUT TARBALL: only the check)
"""

import hashlib
import json
import pathlib
import re
import subprocess
import sys
import tarfile
import time

COMPILED_IN = "(compiled in)"  # in place of a file, in the list of the archive: headers, and scripts of the pages
MODEL_LICENCE = "Apache-2.0"  # models/README.md
# Names of licences in Debian's copyright files that SPDX spells otherwise.
SPDX_NAMES = {"expat": "MIT", "mit": "MIT", "apache-2.0": "Apache-2.0", "asl-2.0": "Apache-2.0", "bsd-2-clause": "BSD-2-Clause",
              "bsd-3-clause": "BSD-3-Clause", "bsd-4-clause": "BSD-4-Clause", "zlib": "Zlib", "isc": "ISC", "curl": "curl",
              "bsl-1.0": "BSL-1.0", "boost-1.0": "BSL-1.0", "openldap-2.8": "OLDAP-2.8",
              "gpl-2": "GPL-2.0-only", "gpl-2+": "GPL-2.0-or-later", "gpl-3": "GPL-3.0-only", "gpl-3+": "GPL-3.0-or-later",
              "lgpl-2": "LGPL-2.0-only", "lgpl-2+": "LGPL-2.0-or-later", "lgpl-2.1": "LGPL-2.1-only",
              "lgpl-2.1+": "LGPL-2.1-or-later", "lgpl-3": "LGPL-3.0-only", "lgpl-3+": "LGPL-3.0-or-later",
              "unicode-dfs-2016": "Unicode-DFS-2016"}
IDENTIFIER = re.compile(r"SPDXRef-[A-Za-z0-9.-]+")
TERM = re.compile(r"LicenseRef-[A-Za-z0-9.-]+|[A-Za-z0-9.+-]+")


def identifier(kind, name):
    return f"SPDXRef-{kind}-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)


def declared_licence(text):
    """The licence that a package's machine-readable copyright file gives for most files, and names that SPDX lacks."""
    if "copyright-format/1.0" not in text.split("\n\n")[0]:
        return "NOASSERTION", []
    paragraphs = [p for p in re.split(r"\n\s*\n", text) if re.search(r"^Files:", p, re.M | re.I)]
    whole = [p for p in paragraphs if re.search(r"^Files:\s*\*", p, re.M | re.I)] or paragraphs
    found = re.search(r"^License:[ \t]*(\S.*)$", whole[0], re.M | re.I) if whole else None
    if not found:
        return "NOASSERTION", []
    terms, own = [], []
    for word in re.split(r"[\s,]+", found.group(1).strip()):
        if word.lower() in ("and", "or"):
            terms.append(word.upper())
            continue
        if terms and terms[-1] not in ("AND", "OR"):
            return "NOASSERTION", []  # an exception or a free text
        name = SPDX_NAMES.get(word.lower())
        if name is None:
            name = "LicenseRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", word)
            own.append(name)
        terms.append(name)
    return " ".join(terms), own


def part(kind, name, version, licence, **more):
    return {"SPDXID": identifier(kind, name), "name": name, "versionInfo": version, "downloadLocation": "NOASSERTION",
            "filesAnalyzed": False, "licenseConcluded": "NOASSERTION", "licenseDeclared": licence,
            "copyrightText": "NOASSERTION", **more}


def debian_part(package, version, licence, files, architecture):
    url = f"pkg:deb/debian/{package}@{version.replace(':', '%3A').replace('+', '%2B')}?arch={architecture}&distro=debian-12"
    reference = {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": url}
    comment = "in the archive: " + ", ".join(files)
    return part("Package", package, version, licence, externalRefs=[reference], comment=comment,
                supplier="Organization: Debian")


class Tarball:
    """The members of the archive that matter here."""

    def __init__(self, path):
        self.libraries, self.models, self.origins, self.copyrights = [], {}, [], {}
        with tarfile.open(path) as archive:
            for member in archive:  # in one pass, because to seek in the archive is to unpack it again
                self.root, _, name = member.name.partition("/")
                if member.isfile():
                    self.read(name, lambda: archive.extractfile(member).read())
        self.version = self.root.split("-")[1]
        self.architecture = "arm64" if self.root.endswith("aarch64") else "amd64"
        self.digest = hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()

    def read(self, name, content):
        if name.startswith("lib/"):
            self.libraries.append(name.removeprefix("lib/"))
        elif name.startswith("share/outrider/models/") and name.endswith(".safetensors"):
            self.models[name.split("/")[3]] = hashlib.sha256(content()).hexdigest()
        elif name.startswith("share/doc/outrider/licences/"):
            self.copyrights[name.split("/")[-1]] = content().decode(errors="replace")
        elif name == "share/doc/outrider/parts.tsv":
            self.origins = [line.split("\t") for line in content().decode().splitlines()[1:]]


def make(tarball):
    packages = {}
    for file, package, version in tarball.origins:
        packages.setdefault(package, (version, []))[1].append(file)
    # The launcher holds parts of the C library, which the list has already.
    parts, own_licences = [], set()
    for package, (version, files) in sorted(packages.items()):
        licence, own = declared_licence(tarball.copyrights[package])
        own_licences.update((name, package) for name in own)
        parts.append(debian_part(package, version, licence, files, tarball.architecture))
    for model, digest in tarball.models.items():
        parts.append(part("Model", model, tarball.version, MODEL_LICENCE, primaryPackagePurpose="OTHER",
                          comment="SHA-256 of its model.safetensors: " + digest))
    product = part("Package", "outrider", tarball.version, "Apache-2.0", packageFileName=tarball.root + ".tar.gz",
                   checksums=[{"algorithm": "SHA256", "checksumValue": tarball.digest}])
    texts = {}
    for name, package in sorted(own_licences):
        texts.setdefault(name, f"See share/doc/outrider/licences/{package} in the archive.")
    contains = [{"spdxElementId": product["SPDXID"], "relationshipType": "CONTAINS", "relatedSpdxElement": p["SPDXID"]}
                for p in parts]
    return {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": tarball.root,
        "documentNamespace": f"https://spdx.org/spdxdocs/{tarball.root}-{tarball.digest}",
        "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                         "creators": ["Tool: packaging/release/bill_of_materials.py"]},
        "packages": [product] + parts,
        "hasExtractedLicensingInfos": [{"licenseId": name, "extractedText": text} for name, text in texts.items()],
        "relationships": [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
                           "relatedSpdxElement": product["SPDXID"]}] + contains}


def licence_problems(document):
    known = set(SPDX_NAMES.values()) | {i["licenseId"] for i in document["hasExtractedLicensingInfos"]}
    for entry in document["packages"]:
        terms = set(TERM.findall(entry["licenseDeclared"])) - {"AND", "OR", "NOASSERTION"}
        for term in sorted(terms - known):
            yield f"{entry['name']}: expected a licence that SPDX or the document defines, found {term}"


def structure_problems(document):
    for key, value in (("spdxVersion", "SPDX-2.3"), ("dataLicense", "CC0-1.0"), ("SPDXID", "SPDXRef-DOCUMENT")):
        if document.get(key) != value:
            yield f"expected {key} {value}, found {document.get(key)}"
    for key in ("name", "documentNamespace", "creationInfo", "packages", "relationships"):
        if not document.get(key):
            yield f"expected {key}, found none"
    identifiers = [document["SPDXID"]] + [entry.get("SPDXID", "") for entry in document["packages"]]
    for name in identifiers:
        if not IDENTIFIER.fullmatch(name) or identifiers.count(name) != 1:
            yield f"expected each SPDXID once, found {name!r}"
    for entry in document["packages"]:
        for key in ("name", "versionInfo", "downloadLocation", "licenseDeclared", "licenseConcluded", "copyrightText"):
            if not entry.get(key):
                yield f"{entry.get('SPDXID')}: expected {key}, found none"
    for relation in document["relationships"]:
        for key in ("spdxElementId", "relatedSpdxElement"):
            if relation.get(key) not in identifiers:
                yield f"expected a relationship of elements of the document, found {relation.get(key)}"


def content_problems(document, tarball):
    listed = set()
    for entry in document["packages"]:
        if entry.get("comment", "").startswith("in the archive: "):
            listed.update(entry["comment"].removeprefix("in the archive: ").split(", "))
    for file in sorted(set(tarball.libraries) ^ (listed - {COMPILED_IN})):
        yield f"expected the libraries of the archive and of the document to be the same, found {file} in one"
    models = {e["name"] for e in document["packages"] if e["SPDXID"].startswith("SPDXRef-Model-")}
    for model in sorted(set(tarball.models) ^ models):
        yield f"expected the models of the archive and of the document to be the same, found {model} in one"
    product = next((e for e in document["packages"] if e["name"] == "outrider"), {})
    if [c["checksumValue"] for c in product.get("checksums", [])] != [tarball.digest]:
        yield "expected the checksum of the archive, found another"


def check(path, tarball):
    document = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    problems = [*structure_problems(document), *licence_problems(document), *content_problems(document, tarball)]
    for problem in problems:
        print(f"bill_of_materials: {problem}", file=sys.stderr)
    unknown = sum(entry["licenseDeclared"] == "NOASSERTION" for entry in document["packages"])
    print(f"bill_of_materials: {path}: {len(document['packages'])} parts, {unknown} with licences that only people can read")
    return 1 if problems else 0


def main():
    arguments = sys.argv[1:]
    if len(arguments) == 3 and arguments[0] == "--check":
        return check(arguments[1], Tarball(arguments[2]))
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    tarball = Tarball(arguments[0])
    pathlib.Path(arguments[1]).write_text(json.dumps(make(tarball), indent=1) + "\n", encoding="utf-8")
    return check(arguments[1], tarball)


if __name__ == "__main__":
    sys.exit(main())
