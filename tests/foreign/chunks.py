"""Reads and writes values in chunks with the official Python client, by their documented form.

Usage: chunks.py CONNECTION_STRING

`chunks.rs` writes the reviews before, and reads what this program has made of them.
"""

import hashlib
import json
import sys

from azure.data.tables import TableClient, UpdateMode


def equal(found, expected):
    assert found == expected, f"{found!r:.200} instead of {expected!r:.200}"


def chunks(value):
    """A string is cut between characters, into chunks of at most 32,768 UTF-16 units, and binary into 65,536 bytes."""
    units = value if isinstance(value, bytes) else value.encode("utf-16-le")
    cut = []
    while units or not cut:
        end = min(len(units), 65536)
        # The first half of a character goes with the second one.
        if isinstance(value, str) and end and 0xD8 <= units[end - 1] <= 0xDB:
            end -= 2
        cut.append(units[:end] if isinstance(value, bytes) else units[:end].decode("utf-16-le"))
        units = units[end:]
    return cut


def names(prefix, count):
    return [prefix, *(f"{prefix}__{number}" for number in range(1, count))]


def checksum(value):
    return hashlib.sha256(value if isinstance(value, bytes) else value.encode()).digest()


def read(entity, prefix):
    parts = [entity[name] for name in names(prefix, entity[f"{prefix}__n"])]
    value = type(parts[0])().join(parts)
    equal(entity[f"{prefix}__sha"], checksum(value))
    return value


def properties(prefix, value):
    parts = chunks(value)
    count = {f"{prefix}__n": len(parts), f"{prefix}__sha": checksum(value)}
    return {**dict(zip(names(prefix, len(parts)), parts)), **count}


def main():
    table = TableClient.from_connection_string(sys.argv[1], "Tests")
    for row, text, scan in [
        ("empty", "", b""),
        ("exact", "x" * 32768, b"\7" * 65536),
        ("longer", "x" * 32769, b"\7" * 65537),
        ("characters", "x" + "🦀" * 40000, bytes(range(256)) * 700),
    ]:
        key = {"PartitionKey": "ann", "RowKey": row}
        review = table.get_entity("ann", row)
        equal((read(review, "Text"), read(review, "Scan")), (text, scan))
        equal(json.loads(read(review, "Answers")), ["Yes", text[:10]])
        expected = {**key, **properties("Text", text), **properties("Scan", scan)}
        equal({name: review[name] for name in expected}, expected)

        # A merge leaves the chunks of a longer value behind.
        change = {**key, **properties("Text", text[1:] + "🦀"), **properties("Scan", scan[:-1])}
        table.update_entity({**change, **properties("Answers", '["No"]')}, mode=UpdateMode.MERGE)
    for row, mode in [("alone", UpdateMode.REPLACE), ("torn", UpdateMode.MERGE)]:
        table.update_entity({"PartitionKey": "ann", "RowKey": row, "Text": "punctual"}, mode=mode)


main()
