#!/usr/bin/env python3
"""Finds dead links: links.py DIRECTORY reads each page of HTML below a directory, and prints each link within the directory that leads
to no file, or to no element of a page. Links to other hosts are not followed.
"""

import html.parser
import os
import sys
from pathlib import Path
from urllib.parse import unquote, urldefrag

# Source files, whose lines are numbered by a script of rustdoc; and the page for a URL that does not exist, which any directory may show.
UNCHECKED = ("/api/src/", "/api/static.files/", "/404.html")
# In the documentation of a trait of `tracing`, which rustdoc copies to each type that implements it.
COPIED = {"dispatcher#setting-the-default-subscriber"}


class Links(html.parser.HTMLParser):
    """The links and ids of a page. In the API documentation, links to items are rustdoc's own, and some lead to items that it hides: only
    links in texts count there, and not those to an item such as `#method.get`.
    """

    def __init__(self, only_texts):
        super().__init__()
        self.only_texts, self.depth = only_texts, 0
        self.links, self.ids = set(), set()

    def handle_starttag(self, tag, attributes):
        classes = (dict(attributes).get("class") or "").split()
        if tag == "div" and (self.depth or "docblock" in classes):
            self.depth += 1
        for name, value in attributes:
            if name == "id":
                self.ids.add(unquote(value))
            elif name in ("href", "src") and value is not None and self.counts(value):
                self.links.add(value)

    def counts(self, link):
        return not self.only_texts or (self.depth and "." not in urldefrag(link).fragment)

    def handle_endtag(self, tag):
        if tag == "div" and self.depth:
            self.depth -= 1


def read(path, only_texts):
    page = Links(only_texts)
    page.feed(path.read_text())
    return page


def dead(root):
    paths = {path: f"/{path.relative_to(root)}" for path in sorted(root.rglob("*.html"))}
    pages = {path: read(path, name.startswith("/api/")) for path, name in paths.items() if not name.startswith(UNCHECKED)}
    for path, page in pages.items():
        for link in sorted(page.links):
            file, fragment = urldefrag(unquote(link))
            if link in COPIED or ":" in file.split("/")[0] or file.startswith("//"):
                continue
            to = Path(os.path.normpath(path.parent / file)) if file else path
            if to.is_dir():
                to /= "index.html"
            if not to.exists():
                yield f"{path.relative_to(root)}: {link}: no such file"
            elif fragment and to in pages and fragment not in pages[to].ids:
                yield f"{path.relative_to(root)}: {link}: no such element"


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: links.py DIRECTORY")
    found = list(dead(Path(sys.argv[1])))
    print("\n".join(found))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
