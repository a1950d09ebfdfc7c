#!/usr/bin/env python3
"""Draws the figures of the documentation, with the standard library alone.

    docs/pictures/figures.py            writes them
    docs/pictures/figures.py --check    fails if a file is not as it would be written

A figure of a guide is written twice: as SVG for the repository and the book, and as a link definition with a data URL for rustdoc, whose
pages load no files. In the guide, `![…][NAME-figure]` takes the definition of the page elsewhere, and the data URL there, which
`guide/mod.rs` puts in front of the page.
"""

import sys
from pathlib import Path
from urllib.parse import quote

sys.dont_write_bytecode = True
import patterns
import performance
from drawing import Figure

ROOT = Path(__file__).resolve().parents[2]
PERFORMANCE = ROOT / "docs/performance.md"
PICTURES = ROOT / "docs/pictures"
RUSTDOC = ROOT / "tablesdk/src/guide/figures"


def architecture():
    figure = Figure(
        760,
        "The crates and who talks to whom",
        "A program, or the command line tables, calls the client tablesdk. In the client, an action goes through entity conversion, "
        "patterns, pipeline and transport. The transport sends requests over HTTP to Azure Table storage, Cosmos DB or "
        "tablesdk-server, or calls a server in the same process. The server handles a request in its service, decides it in the engine, "
        "and keeps records in a storage: in memory, in a data directory or in PostgreSQL. Client and server share "
        "tablesdk-protocol, and do not depend on each other.",
    )
    bar = 576
    figure.box(20, 20, 250, 66, "Your program", ["`#[derive(TableEntity)]`"], "blue")
    figure.box(296, 20, 250, 66, "`tables`", ["command line: `tablesdk-cli`"], "blue")
    figure.arrow(145, 86, 145, 118)
    figure.arrow(421, 86, 421, 118)

    figure.rect(20, 118, 526, 244, "green")
    figure.text(36, 143, "`tablesdk`, the client", "name", "start")
    client = [
        "entity: struct ↔ properties; `tablesdk-derive` writes it",
        "patterns: indexes, outbox, leases, encryption, …",
        "action: one operation, its options and its outcome",
        "pipeline: date, signature, retries, deadline",
        "transport: one request",
    ]
    figure.stack(36, 154, 494, client)

    figure.box(20, 436, 172, 96, None, ["Azure Table storage,", "Azure Cosmos DB", "for Table, Azurite"])
    figure.arrow(102, 362, 102, 436)
    figure.text(112, 404, "HTTPS", "soft", "start")

    figure.rect(206, 436, 340, 206, "green")
    figure.text(222, 461, "`tablesdk-server`", "name", "start")
    server = [
        "http: sockets, TLS",
        "service: signature, one handler",
        "engine: conditions, filters, limits",
        "storage: ordered bytes",
    ]
    figure.stack(222, 472, 270, server)
    figure.arrow(416, 362, 416, 472)
    figure.text(406, 404, "HTTP(S)", "soft", "end")
    figure.path([(519, 362), (519, 529), (492, 529)])
    figure.text(509, 404, "in process", "soft", "end")

    for x, lines in [(206, ["memory"]), (322, ["data", "directory"]), (438, ["PostgreSQL,", "shared"])]:
        figure.arrow(x + 54, 642, x + 54, 676)
        figure.box(x, 676, 108, 60, None, lines)
    figure.text(190, 700, "records are", "soft", "end")
    figure.text(190, 720, "the same", "soft", "end")

    figure.rect(bar, 118, 124, 524, "yellow")
    figure.lines(bar + 62, 212, ["`tablesdk-`", "`protocol`"], "name", leading=22)
    figure.lines(
        bar + 62,
        272,
        ["values, keys", "JSON, XML", "filters", "URLs", "signatures", "operations", "", "shared by", "client and", "server;", "no I/O,", "no clock"],
        leading=25,
    )
    figure.arrow(546, 240, bar, 240, dashed=True)
    figure.arrow(546, 600, bar, 600, dashed=True)
    return figure


def lost_response():
    figure = Figure(
        906,
        "An insert whose response is lost",
        "The program calls insert. The client sends the entity, the service stores it, and the response is lost. The client retries, and "
        "the service refuses the retry with 409 EntityAlreadyExists. A plain insert reads the entity and returns OutcomeUnknown "
        "together with what was found, because another client may have inserted it. With exactly_once, each attempt is a transaction that "
        "also inserts a marker. The 409 is about the marker, the client reads it, finds the state committed, and returns Ok. If no response arrives "
        "at all, the client inserts the marker in the state cancelled. If it can, no attempt was carried out, and none will be.",
    )
    program, client, service = 96, 350, 612
    for x, name in [(program, "program"), (client, "client"), (service, "service")]:
        figure.arrow(x, 56, x, 890, "line", dashed=True, head=False)
        figure.box(x - 66, 20, 132, 36, name, kind="blue" if x == program else "green")

    def message(x1, x2, y, label, dashed=False, kind="", end=None):
        figure.text((x1 + x2) / 2, y - 9, label, kind)
        figure.arrow(x1, y, end if end is not None else x2, y, dashed=dashed)

    def note(x, y, width, lines, kind="box"):
        figure.box(x - width / 2, y, width, 10 + 20 * len(lines), None, lines, kind)

    message(program, client, 94, "`insert(&ada)`")
    message(client, service, 126, "the entity")
    note(service, 138, 150, ["stores it"], "green")
    figure.arrow(service, 194, 450, 194, "lost", dashed=True, head=False)
    figure.cross(442, 194)
    figure.text(530, 185, "201, lost", "red")
    note(client, 206, 230, ["no response: waits, retries"])
    message(client, service, 268, "the entity, again")
    message(service, client, 306, "409 `EntityAlreadyExists`", dashed=True)
    note(client, 320, 420, ["Inserted by the first attempt, or by another client?"], "yellow")

    figure.rect(20, 370, 680, 196, "frame")
    figure.text(112, 396, "`insert`", "name", "start")
    message(client, service, 426, "reads the entity")
    message(service, client, 464, "the entity and its ETag", dashed=True)
    note(client, 478, 420, ["Equal content does not show who wrote it."])
    message(client, program, 542, "`Err`: `OutcomeUnknown`", dashed=True)
    figure.text(client + 16, 547, "`current()` has what was read", "soft", "start")

    figure.rect(20, 580, 680, 302, "frame")
    figure.text(112, 606, "`insert(…).exactly_once()`", "name", "start")
    note(client + 75, 620, 530, ["Each attempt is a transaction: a marker, then the entity.", "So the 409 of the retry is about the marker."])
    message(client, service, 702, "reads the marker")
    message(service, client, 740, "marker: `committed`", dashed=True)
    message(client, service, 772, "reads the entity, for its ETag")
    message(client, program, 806, "`Ok`: inserted once", dashed=True)
    note(client, 822, 640, ["No response at all: the client inserts the marker itself, as `cancelled`.", "If it can, no attempt was carried out, and none will be: `Err`."])
    return figure


def outbox():
    figure = Figure(
        548,
        "The outbox",
        "The program first writes a pointer to the partition into one of 16 partitions. Then one transaction in the partition sales writes "
        "the department, the head of the outbox and two steps. A worker finds the partition by the pointer, reads the steps, and applies "
        "them in order: it writes a title into another partition, and calls a function for the message. It then deletes the steps. The writer "
        "applies steps at once where it can. A step that fails is tried again after 30 seconds, and later after up to 10 minutes. After 10 "
        "refusals it is set aside.",
    )
    figure.box(20, 20, 330, 62, "Your program", ["`batch(…).replace(…).step(…)`"], "blue")
    figure.box(440, 20, 260, 62, None, ["pointer to `sales`, in one", "of 16 partitions"], "yellow")
    figure.arrow(350, 51, 440, 51)
    figure.step(390, 51, "1")

    figure.rect(20, 140, 330, 284, "frame")
    figure.text(36, 166, "partition `sales`", "name", "start")
    figure.rect(36, 180, 298, 190, "green")
    figure.text(185, 202, "one transaction: all or nothing")
    figure.box(50, 212, 270, 32, None, ["department `sales`, new title"])
    figure.box(50, 252, 270, 32, None, ["head of the outbox"], "yellow")
    figure.box(50, 292, 270, 32, None, ["step 1: write the title"], "yellow")
    figure.box(50, 332, 270, 32, None, ["step 2: message `renamed`"], "yellow")
    figure.lines(36, 393, ["The steps are stored once, and only", "if the department is."], "soft", "start")
    figure.arrow(260, 82, 260, 180)
    figure.step(260, 111, "2")

    figure.box(440, 180, 260, 84, "Worker", ["`Outbox::drain()`; or at once", "the writer"], "blue")
    figure.arrow(570, 180, 570, 82)
    figure.step(570, 131, "3")
    figure.text(588, 136, "finds it", "", "start")
    figure.arrow(440, 238, 334, 238)
    figure.step(412, 238, "4")
    figure.text(356, 229, "reads", "", "start")

    figure.box(440, 330, 226, 84, "title `sales`", ["another partition, table;", "one effect"], "green")
    figure.box(440, 444, 260, 84, "your function", ["for the message `renamed`;", "called at least once"], "green")
    figure.arrow(510, 264, 510, 330)
    figure.arrow(683, 264, 683, 444)
    figure.step(510, 297, "5")
    figure.text(530, 302, "applies in order", "", "start")

    figure.step(31, 451, "6")
    figure.text(50, 456, "The worker deletes a step that was applied.", "", "start")
    figure.lines(
        20,
        487,
        ["A step that fails is tried again: after 30 s, then", "later, after up to 10 minutes. The next ones wait.", "After 10 refusals it is set aside."],
        "soft",
        "start",
    )
    return figure


def test_kit():
    figure = Figure(
        500,
        "The test kit",
        "A test starts tablesdk-server in its own process, gives the program under test a client of it, and controls the kit of the "
        "server: it injects faults and moves the clock, reads the journal, and takes and restores snapshots of all tables. A request of the client "
        "meets the faults, then the rules of the service, then the tables. Programs in other languages use the same kit over HTTP.",
    )
    figure.box(20, 60, 180, 88, "Your test", ["starts the server,", "checks the results"], "blue")
    figure.box(20, 236, 180, 88, "Program", ["under test, with its", "client `tablesdk`"], "green")
    figure.arrow(120, 148, 120, 236)
    figure.text(130, 197, "calls", "", "start")

    figure.rect(300, 20, 400, 460, "frame")
    figure.text(316, 46, "`tablesdk-server`", "name", "start")
    figure.arrow(200, 104, 316, 104)
    figure.text(212, 94, "controls", "", "start")
    figure.box(316, 60, 176, 88, "`faults()`", ["lost, late, twice,", "refused, cut off"], "yellow")
    figure.box(508, 60, 176, 88, "`clock()`", ["advanced, frozen;", "with tokio's time"], "yellow")

    figure.arrow(200, 280, 316, 280, both=True)
    figure.lines(212, 250, ["in process", "or HTTP"], "", "start")
    figure.box(316, 236, 94, 88, "a fault,", ["or none"], "yellow")
    figure.arrow(410, 280, 440, 280, both=True)
    figure.box(440, 236, 126, 88, "service", ["rules, codes,", "limits"])
    figure.arrow(566, 280, 596, 280, both=True)
    figure.box(596, 236, 88, 88, "tables")
    figure.arrow(363, 148, 363, 236)
    figure.path([(596, 148), (596, 192), (530, 192), (530, 236)])

    figure.box(316, 376, 176, 88, "`journal()`", ["each request, how", "it went; scans"], "yellow")
    figure.box(508, 376, 176, 88, "`snapshot()`", ["`restore()`, `dump()`:", "all tables"], "yellow")
    figure.arrow(462, 324, 462, 376)
    figure.arrow(638, 324, 638, 376, both=True)

    figure.lines(
        20,
        384,
        ["In other languages: the", "program `tablesdk-server`", "`--test`, and the same kit", "over HTTP with JSON."],
        "soft",
        "start",
    )
    return figure


FIGURES = {
    "architecture": (architecture, False),
    "lost-response": (lost_response, True),
    "outbox": (outbox, True),
    "test-kit": (test_kit, True),
    **{name: (draw, True) for name, draw in patterns.FIGURES.items()},
}


def files():
    """The path and the content of each file."""
    page = PERFORMANCE.read_text(encoding="utf-8")
    yield PICTURES / "performance-client.svg", performance.client(page).svg()
    yield PICTURES / "performance-server.svg", performance.server(page).svg()
    for name, (draw, is_of_guide) in FIGURES.items():
        svg = draw().svg()
        yield PICTURES / f"{name}.svg", svg
        if is_of_guide:
            url = "data:image/svg+xml," + quote(svg, safe=" =:/;,.-_!*'()@+?~")
            yield RUSTDOC / f"{name}.md", f"[{name}-figure]: <{url}>\n"


def without_figure():
    """The figures that no guide shows, or that rustdoc would not find."""
    module = (RUSTDOC.parent / "mod.rs").read_text(encoding="utf-8")
    guides = "".join(path.read_text(encoding="utf-8") for path in RUSTDOC.parent.glob("*.md"))
    for name, (_, is_of_guide) in FIGURES.items():
        if is_of_guide and (f'include_str!("figures/{name}.md")' not in module or f"][{name}-figure]" not in guides):
            yield name


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit("usage: docs/pictures/figures.py [--check]")
    stale = []
    for path, content in files():
        if not sys.argv[1:]:
            path.parent.mkdir(exist_ok=True)
            path.write_text(content, encoding="utf-8", newline="\n")
        elif not path.is_file() or path.read_text(encoding="utf-8") != content:
            stale.append(str(path.relative_to(ROOT)))
    missing = list(without_figure())
    if missing:
        sys.exit(f"no guide has, or guide/mod.rs does not include: {', '.join(missing)}")
    if stale:
        sys.exit(f"not as docs/pictures/figures.py writes them: {', '.join(stale)}")


if __name__ == "__main__":
    main()
