"""The charts of docs/performance.md, drawn from the tables of that page."""

import re

from drawing import Figure

# Bars of another program's figure are as long as this at most, with room for the figure behind.
BAR = 400
LEFT = 200

OPERATIONS = ["point read", "insert", "page of 1,000", "batch of 100"]
CLIENTS = [
    ("reqwest + serde_json by hand", "by hand, reqwest"),
    ("azure_data_tables 0.21", "`azure_data_tables`"),
    ("@azure/data-tables for JavaScript", "official, JavaScript"),
    ("azure-data-tables for Python", "official, Python"),
]
SERVER = "plain server"


class Section:
    """A section of the page: its date, and the rows of its first table that has the columns `ours` and `theirs`."""

    def __init__(self, page, title):
        text = page.split(f"\n## {title}\n")[1].split("\n## ")[0]
        self.date = re.search(r"Measured on (\d{4}-\d\d-\d\d)", text)[1]
        table = next(block for block in text.split("\n\n") if block.startswith("| path |"))
        lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
        self.rows = [dict(zip(lines[0], cells, strict=True)) for cells in lines[2:]]

    def row(self, path, against):
        found = [row for row in self.rows if (row["path"], row["against"]) == (path, against)]
        if len(found) != 1:
            raise SystemExit(f"docs/performance.md has {len(found)} rows of {path!r} against {against!r}")
        return found[0]


def value(cell):
    """The number of a cell such as `4724`, `56 k` or `0.46 ✗`."""
    match = re.fullmatch(r"([\d.]+)(?: ([kM]))?(?: ✗)?", cell)
    return float(match[1]) * {None: 1, "k": 1e3, "M": 1e6}[match[2]]


def multiple(row):
    """The processor time of another client, as a multiple of ours in the same run: the rows of two clients may be of two runs."""
    median = value(row["median"])
    return median if row["figure"] == "their processor time / ours" else 1 / median


def client(page):
    """Bars of each client, for each operation on a scale of its own."""
    section = Section(page, "The client")
    figure = Figure(
        690,
        "Processor time of the client",
        f"Processor time for each operation as a multiple of that of tablesdk, measured on {section.date}, of a program by hand, the crate "
        "azure_data_tables, and the official clients for JavaScript and Python. The figures are in the table of the section on the client.",
    )
    figure.text(20, 36, "Processor time as a multiple of `tablesdk`: shorter is better", "name", "start")
    figure.text(20, 60, f"measured on {section.date}; each operation has a scale of its own", "soft", "start")
    y = 92
    for operation in OPERATIONS:
        by_hand = "page of 1,000 into structs" if operation == "page of 1,000" else operation
        rows = [
            section.row(f"client, {by_hand if index == 0 else operation}", against) for index, (against, _) in enumerate(CLIENTS)
        ]
        bars = [("`tablesdk`", 1, "bar")]
        bars += [(label, multiple(row), "other") for (_, label), row in zip(CLIENTS, rows, strict=True)]
        largest = max(size for _, size, _ in bars)
        figure.text(20, y + 12, operation, "name", "start")
        y += 20
        for label, size, kind in bars:
            figure.text(LEFT - 8, y + 15, label, "", "end")
            figure.rect(LEFT, y + 3, max(BAR * size / largest, 1.5), 15, kind, 2)
            figure.text(LEFT + BAR * size / largest + 8, y + 16, f"{round(size, 2):.3g}", "", "start")
            y += 22
        y += 18
    return figure


def server(page):
    """Bars of the ratio to the plain server, with a line at 1."""
    section = Section(page, "The server")
    rows = [row for row in section.rows if row["against"] == SERVER]
    figure = Figure(
        130 + 24 * len(rows),
        "Work of the server beside that of a plain one",
        f"Requests, or entities of a scan or filter, for each second of processor time, as a multiple of a plain server, measured on {section.date}. "
        "The figures are in the table of the section on the server.",
    )
    figure.text(20, 36, "Work per CPU second, beside a plain server: longer is better", "name", "start")
    figure.text(20, 60, f"requests; entities of scan and filter; measured on {section.date}; the line is the plain server", "soft", "start")
    left, bar = 250, 380
    largest = max(value(row["median"]) for row in rows)
    y = 84
    for row in rows:
        size = value(row["median"])
        figure.text(left - 8, y + 15, row["path"], "", "end")
        figure.rect(left, y + 3, bar * size / largest, 15, "bar", 2)
        figure.text(left + max(bar * size / largest, bar / largest) + 8, y + 16, f"{size:g}", "", "start")
        y += 24
    one = left + bar / largest
    figure.arrow(one, 80, one, y + 6, "lost", head=False)
    figure.text(one, y + 26, "1", "soft")
    return figure
