#!/usr/bin/env python3
"""Assembles the sources of the book from the pages of the repository.

    assemble.py DOC BOOK

DOC is the directory of the API documentation, as `cargo doc` has written it. BOOK gets `src`, with a file for each page of SUMMARY.md.

A page that is also a part of the API documentation has links to items, which rustdoc has resolved: its links in DOC are in the same
order. All other links are paths of files, or URLs. A link to a file that is a page of the book leads to the page, any other one to
the file on the code host. A link to nothing is an error.
"""

import html.parser
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import urldefrag, urljoin

ROOT = Path(__file__).resolve().parents[2]
HOST = "https://github.com/tablesdk/tablesdk"
# Where the book is published. The README leads there, because a code host shows guides without their links.
PUBLISHED = "https://tablesdk.github.io/tablesdk/"
DOCS = re.compile(r"https://docs\.rs/tablesdk[a-z-]*/latest/")
PICTURES = {".svg", ".png"}

# The files of which rustdoc makes a page, in their order there. A guide is a page of its own.
PARTS = {
    "tablesdk/index.html": ["tablesdk/README.md", "tablesdk/src/docs/front_page.md"],
    "tablesdk/derive.TableEntity.html": [
        "tablesdk/src/docs/table_entity.md",
        "tablesdk/src/docs/entity_type.md",
        "tablesdk/src/docs/encrypt.md",
    ],
    "tablesdk/derive.PropertyValue.html": ["tablesdk/src/docs/property_value.md"],
}
GUIDES = "tablesdk/src/guide"

# A code span, or a link or picture. A label may contain code spans and one picture.
INLINE = re.compile(
    r"(?P<ticks>`+)(?!`).*?(?<!`)(?P=ticks)(?!`)"
    r"|(?P<bang>!?)\[(?P<label>(?:!\[[^\]]*\]\([^)]*\)|`[^`]*`|\\.|[^\[\]`\\])*)\](?:\((?P<dest>[^()\s]*)\))?",
    re.DOTALL,
)
# The file of a figure, whose link in rustdoc has another definition.
DEFINITION = re.compile(r"^\[(?P<label>[a-z-]+-figure)\]: (?P<dest>\S+)$", re.MULTILINE)
# In HTML, such as a picture with a version for dark pages.
ATTRIBUTE = re.compile(r'(?<=\s)(?P<name>src|srcset|href)="(?P<dest>[^"]*)"')
FENCE = re.compile(r"^\s*(?P<fence>```+|~~~+)(?P<info>.*)$")
HEADING = re.compile(r"^(?P<marks>#{1,5}) (?P<text>.*)$")
# Links that rustdoc adds to headings, and to programs such as those that must not compile.
NOT_OF_TEXT = {"doc-anchor", "tooltip"}
# The last lines of a guide in rustdoc lead to the guides before and after it.
NEIGHBOUR = re.compile(r"\.\./(\w+/)?index\.html")
# `compile_fail` may be followed by the code of the error.
RUST_FLAG = re.compile(r"rust|no_run|should_panic|ignore|compile_fail|E\d{4}")


class Wrong(Exception):
    """A page that cannot become a page of the book."""


class DocBlock(html.parser.HTMLParser):
    """The links and the ids of headings of the text at the top of a page of rustdoc."""

    def __init__(self):
        super().__init__()
        self.depth, self.done = 0, False
        self.links, self.headings = [], []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        classes = (attributes.get("class") or "").split()
        if self.depth:
            self.depth += tag == "div"
            if tag == "a" and NOT_OF_TEXT.isdisjoint(classes):
                self.links.append(attributes["href"])
            if re.fullmatch("h[2-6]", tag):
                self.headings.append(attributes["id"])
        elif tag == "div" and "docblock" in classes and not self.done:
            self.depth = 1

    def handle_endtag(self, tag):
        if self.depth and tag == "div":
            self.depth -= 1
            self.done = not self.depth


class Page:
    def __init__(self, title, source):
        self.title, self.source = title, source
        self.name = page_name(source)
        self.rustdoc = rustdoc_page(source)


def page_name(source):
    """The files of the book are in one directory."""
    if source == "README.md":
        return "index.md"
    path = Path(source)
    if path.name == "README.md":
        return f"{path.parent.name}.md"
    return path.name.lower().replace("_", "-")


def rustdoc_page(source):
    path = Path(source)
    if str(path.parent) == GUIDES:
        return f"tablesdk/guide/{path.stem}/index.html"
    return next((page for page, parts in PARTS.items() if source in parts), None)


def read_summary():
    """The lines of the summary, each with its page if it has one."""
    lines = []
    for line in (ROOT / "docs/book/SUMMARY.md").read_text().splitlines():
        match = re.fullmatch(r"(?P<before>\s*(?:- )?)\[(?P<title>.*)\]\(../../(?P<source>.*)\)", line)
        page = match and Page(match["title"], match["source"])
        lines.append((f"{match['before']}[{match['title']}]({page.name})" if page else line, page))
    return lines


def blocks(text):
    """Pairs of a line and what it is: `fence` opens a code block, `code` is in one, and all else is `text`."""
    closing = None
    for line in text.splitlines():
        match = FENCE.match(line)
        if closing:
            yield line, "code"
            if match and match["fence"] == closing and not match["info"].strip():
                closing = None
        elif match:
            closing = match["fence"]
            yield line, "fence"
        else:
            yield line, "text"


def prose(text):
    """Runs of lines: prose as one string, since a link may be broken over two lines, and lines of code one by one."""
    run = []
    for line, kind in blocks(text):
        if kind == "text":
            run.append(line)
            continue
        if run:
            yield "\n".join(run), "text"
            run = []
        yield line, kind
    if run:
        yield "\n".join(run), "text"


def is_link(match, is_doc):
    """Without a destination, only a code span in brackets is a link, and only for rustdoc."""
    if match["ticks"] or match["bang"]:
        return False
    if match["dest"] is not None:
        return True
    label = match["label"]
    after = match.string[match.end() : match.end() + 1]
    return is_doc and after not in ("[", ":") and bool(re.fullmatch(r"`[\w:!()<>]+`|[a-z]\w*", label))


def links(text):
    """The destinations of the links of a page of rustdoc."""
    found = []
    for part, kind in prose(text):
        if kind == "text":
            matches = (match for match in INLINE.finditer(part) if is_link(match, True))
            found += [match["dest"] or match["label"] for match in matches]
    return found


def agree(link, href):
    """True if a link as rustdoc has resolved it has the name and the fragment of the link in the page."""
    path, fragment = urldefrag(link)
    name = re.split("::|@", path)[-1].strip("`!()")
    return name in href and (not fragment or urldefrag(href).fragment == fragment)


class Book:
    def __init__(self, doc, book):
        self.doc, self.src = Path(doc), Path(book) / "src"
        self.summary = read_summary()
        self.pages = {page.source: page for _, page in self.summary if page}
        self.by_rustdoc = {page.rustdoc: page for page in self.pages.values() if page.rustdoc}
        self.files = set(git("ls-files").splitlines())
        self.directories = {str(parent) for file in self.files for parent in Path(file).parents}
        self.resolved, self.ids, self.pictures = {}, {}, {}

    def assemble(self):
        missing = sorted(file for file in self.files if re.fullmatch(f"({GUIDES}|docs)/[^/]+\\.md", file) and file not in self.pages)
        if missing:
            raise Wrong(f"docs/book/SUMMARY.md lacks {', '.join(missing)}")
        names = [page.name for page in self.pages.values()]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise Wrong(f"two pages of docs/book/SUMMARY.md have the name {', '.join(twice)}")
        shutil.rmtree(self.src, ignore_errors=True)
        self.src.mkdir(parents=True)
        (self.src / "SUMMARY.md").write_text("\n".join(line for line, _ in self.summary) + "\n")
        for rustdoc in self.by_rustdoc:
            self.read_rustdoc(rustdoc)
        for page in self.pages.values():
            (self.src / page.name).write_text(self.convert(page))

    def read_rustdoc(self, rustdoc):
        """Joins the links and headings of the parts of a page with those that rustdoc has written."""
        parts = PARTS.get(rustdoc) or [self.by_rustdoc[rustdoc].source]
        block = DocBlock()
        block.feed((self.doc / rustdoc).read_text())
        texts = {part: (ROOT / part).read_text() for part in parts}
        hrefs, ids = iter(block.links), iter(block.headings)
        wrong = Wrong(f"{rustdoc} has not the links and headings of {', '.join(parts)}: is it built from another version, or is a link not written as [label](target)?")
        try:
            for part, text in texts.items():
                pairs = [(link, next(hrefs)) for link in links(text)]
                for link, href in pairs:
                    if not agree(link, href):
                        raise Wrong(f"{part} has a link to {link}, and {rustdoc} has {href} in its place")
                self.resolved[part] = dict(pairs)
                heads = [line for line, kind in blocks(text) if kind == "text" and HEADING.match(line)]
                self.ids[part] = [next(ids) for _ in heads]
        except StopIteration:
            raise wrong from None
        if list(ids) or not all(NEIGHBOUR.fullmatch(href) for href in hrefs):
            raise wrong

    def convert(self, page):
        text = without_title(page, (ROOT / page.source).read_text())
        ids = iter(self.ids.get(page.source, []))
        lines = [f"# {page.title}", ""] if page.rustdoc else []
        for part, kind in prose(text):
            if kind == "text":
                lines.append(self.convert_prose(page, part, ids))
            elif kind == "fence":
                lines.append(convert_fence(part, page.rustdoc))
            else:
                lines.append(part)
        if page.source == "README.md":
            lines += ["", built_from()]
        return "\n".join(lines) + "\n"

    def convert_prose(self, page, text, ids):
        text = INLINE.sub(lambda match: self.convert_link(page, match), text)
        text = DEFINITION.sub(lambda match: f"[{match['label']}]: {self.target(page, match['dest'])}", text)
        text = ATTRIBUTE.sub(lambda match: f'{match["name"]}="{self.target(page, match["dest"])}"', text)
        if not page.rustdoc:
            return text
        # The title of the page is the heading of the first level.
        lines = (HEADING.sub(lambda match: f"#{match['marks']} {match['text']} {{#{next(ids)}}}", line) for line in text.split("\n"))
        return "\n".join(lines)

    def convert_link(self, page, match):
        if match["bang"] and re.match("https?:", match["dest"] or ""):
            # Of another host, such as a badge: the book is also read offline.
            return match["label"]
        if match["bang"]:
            return f"![{match['label']}]({self.target(page, match['dest'])})" if match["dest"] else match[0]
        if not is_link(match, bool(page.rustdoc)):
            return match[0]
        label = INLINE.sub(lambda inner: self.convert_link(page, inner), match["label"]) if "![" in match["label"] else match["label"]
        # Badges in a row are words here, and need a sign between them.
        separator = " ·" if label != match["label"] and match.string.startswith("\n[![", match.end()) else ""
        return f"[{label}]({self.target(page, match['dest'] or match['label'])}){separator}"

    def target(self, page, dest):
        href = self.resolved.get(page.source, {}).get(dest, dest)
        if href != dest:
            href = urljoin(page.rustdoc, href)
            return href if ":" in href else self.in_doc(href)
        if page.rustdoc in PARTS and dest.startswith("#"):
            return self.in_doc(page.rustdoc + dest)
        on_docs = DOCS.match(dest)
        if on_docs:
            return self.in_doc(dest[on_docs.end() :])
        if dest.startswith(PUBLISHED):
            return self.in_book(dest[len(PUBLISHED) :])
        for prefix in (f"{HOST}/blob/main/", f"{HOST}/tree/main/"):
            if dest.startswith(prefix):
                return self.in_repository(page, dest[len(prefix) :])
        if re.match(r"[a-z]+:|#", dest):
            return dest
        return self.in_repository(page, os.path.normpath(f"{Path(page.source).parent}/{dest}"))

    def in_book(self, path):
        file, fragment = urldefrag(path)
        name = (file or "index.html").removesuffix(".html") + ".md"
        if all(name != page.name for page in self.pages.values()):
            raise Wrong(f"there is no {path} in the book")
        return join(name, fragment)

    def in_doc(self, path):
        """A page of the API documentation, or the page of the book that it is made of."""
        file, fragment = urldefrag(path)
        page = self.by_rustdoc.get(file)
        if file in PARTS and page:
            # A page of several parts: the one with this heading.
            page = next((self.pages[part] for part in PARTS[file] if fragment and fragment in self.ids.get(part, []) and part in self.pages), None)
        if page:
            return join(page.name, fragment)
        if not (self.doc / file).is_file():
            raise Wrong(f"there is no {path} in the API documentation")
        return join(f"api/{file}", fragment)

    def in_repository(self, page, path):
        file, fragment = urldefrag(path)
        file = file.rstrip("/")
        if f"{file}/README.md" in self.pages:
            file = f"{file}/README.md"
        if file in self.pages:
            return join(self.pages[file].name, fragment)
        if Path(file).suffix in PICTURES and file in self.files:
            name = Path(file).name
            if self.pictures.setdefault(name, file) != file:
                raise Wrong(f"two pictures have the name {name}: {file} and {self.pictures[name]}")
            shutil.copy(ROOT / file, self.src)
            return name
        if file in self.files:
            return join(f"{HOST}/blob/main/{file}", fragment)
        if file in self.directories:
            return f"{HOST}/tree/main/{file}"
        raise Wrong(f"{page.source}: there is no {path}")


def built_from():
    """Readers of a book that is kept must know how old it is."""
    commit, short, date = git("log", "-1", "--format=%H %h %cs").split()
    return f"This book was built from [{short}]({HOST}/commit/{commit}) of {date}."


def git(*arguments):
    return subprocess.check_output(["git", *arguments], cwd=ROOT, text=True)


def without_title(page, text):
    """A guide begins with `Title: subject.`, since rustdoc shows the name of its module as its heading."""
    if not page.source.startswith(GUIDES):
        return text
    title, subject = text.split(": ", 1)
    if title != page.title:
        raise Wrong(f"docs/book/SUMMARY.md has the title {page.title} for {page.source}, whose title is {title}")
    return subject[:1].upper() + subject[1:]


def convert_fence(line, is_doc):
    """The language of a block as mdBook knows it: rustdoc takes Rust for granted."""
    match = FENCE.match(line)
    flags = [flag for flag in re.split(r"[,\s]+", match["info"].strip()) if flag]
    if (is_doc and not flags) or (flags and all(map(RUST_FLAG.fullmatch, flags))):
        flags = ["rust"] + [flag for flag in flags if flag != "rust"]
    return line[: match.start("info")] + ",".join(flags)


def join(target, fragment):
    return f"{target}#{fragment}" if fragment else target


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: assemble.py DOC BOOK")
    try:
        Book(*sys.argv[1:]).assemble()
    except Wrong as wrong:
        sys.exit(f"error: {wrong}")


if __name__ == "__main__":
    main()
