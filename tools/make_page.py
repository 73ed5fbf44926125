#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes one page with its styles and scripts as a string of C++ (cmake/outrider.cmake calls it).

The Content-Security-Policy of the page lets nothing run but these scripts, which it names by their hashes.
"""

import argparse
import base64
import hashlib
import pathlib
import re

POLICY = ("default-src 'none'; style-src '{style}'; script-src '{script}'; connect-src 'self'; img-src data:; "
          "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'")
SOURCE = """// SPDX-License-Identifier: Apache-2.0
#include <string_view>

namespace outrider {{

extern const std::string_view {name};
const std::string_view {name} = R"page_text({page})page_text";

}}  // namespace outrider
"""


def text_of(paths):
    return "\n" + "".join(path.read_text(encoding="utf-8") for path in paths)


def content_hash(text):
    """The name of inline text in a Content-Security-Policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", help="of the C++ constant")
    parser.add_argument("title")
    for part in ("frame", "body", "output"):
        parser.add_argument(f"--{part}", type=pathlib.Path, required=True)
    for part in ("styles", "scripts"):
        parser.add_argument(f"--{part}", type=pathlib.Path, nargs="+", required=True)
    options = parser.parse_args()
    style = text_of(options.styles)
    # Within a script element these would begin or end one; in strings and expressions of JavaScript \x3c is the same.
    script = re.sub(r"<(!--|/?script)", r"\\x3c\1", text_of(options.scripts))
    # Compilers refuse marks of the direction of text in a source; there, too, an escape is the same.
    script = re.sub("[\u202a-\u202e\u2066-\u2069]", lambda mark: f"\\u{ord(mark[0]):04x}", script)
    parts = {"POLICY": POLICY.format(style=content_hash(style), script=content_hash(script)), "TITLE": options.title,
             "STYLE": style, "BODY": options.body.read_text(encoding="utf-8"), "SCRIPT": script}
    frame = options.frame.read_text(encoding="utf-8")
    page = re.sub(r"@([A-Z]+)@", lambda match: parts[match.group(1)], frame)
    options.output.write_text(SOURCE.format(name=options.name, page=page), encoding="utf-8")


if __name__ == "__main__":
    main()
