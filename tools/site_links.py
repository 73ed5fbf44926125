# SPDX-License-Identifier: Apache-2.0
"""A hook of MkDocs: a link that leaves docs/ becomes its text and the file's path, because the site has no such page."""

import posixpath
import re

OUTSIDE = re.compile(r"\[([^\]]*)\]\(((?:\.\./)+[^)\s#]+)(?:#[^)\s]*)?\)")


def on_page_markdown(markdown, page, **_):
    folder = posixpath.join("docs", posixpath.dirname(page.file.src_path))

    def replaced(link):
        path = posixpath.normpath(posixpath.join(folder, link.group(2)))
        if path.startswith("docs/"):
            return link.group(0)
        name = link.group(1).strip("`")
        return f"`{path}`" if name in (path, posixpath.basename(path)) else f"{link.group(1)} (`{path}`)"

    return OUTSIDE.sub(replaced, markdown)
