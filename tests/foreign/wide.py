"""Reads and writes wide entities with the official Python client, by their documented form.

Usage: wide.py CONNECTION_STRING

`wide.rs` writes the entities before, and reads those that this program writes.
"""

import secrets
import sys

from azure.core import MatchConditions
from azure.data.tables import TableClient, UpdateMode


def siblings(head, names):
    """The row keys of the siblings of a head."""
    start = f"{head['RowKey']}!{head['TablesdkVersion']}!"
    return [f"{start}{number:02}" for number in range(1, len(names) + 1)]


def names(head):
    """The first names of the siblings."""
    return [name for name in head.get("TablesdkParts", "").split(",") if name]


OWN = {"PartitionKey", "RowKey", "TablesdkVersion", "TablesdkParts"}


def read(table, partition, row):
    """Reads a wide entity as a whole. A sibling that is missing is an error here, as no other client writes."""
    head = table.get_entity(partition, row)
    parts = [head] + [table.get_entity(partition, key) for key in siblings(head, names(head))]
    properties = {}
    for part in parts:
        assert part["TablesdkVersion"] == head["TablesdkVersion"], part["RowKey"]
        properties.update({name: value for name, value in part.items() if name not in OWN})
    return head, properties


def replace(table, head, properties):
    """Replaces a wide entity of small properties, in one transaction."""
    version = secrets.token_hex(8)
    ordered = sorted(properties.items(), key=lambda item: item[0].encode())
    parts = [ordered[:250]]
    parts += [ordered[start : start + 251] for start in range(250, len(ordered), 251)]
    new = {
        "PartitionKey": head["PartitionKey"],
        "RowKey": head["RowKey"],
        "TablesdkVersion": version,
        "TablesdkParts": ",".join(part[0][0] for part in parts[1:]),
        **dict(parts[0]),
    }
    conditional = {
        "mode": UpdateMode.REPLACE,
        "etag": head.metadata["etag"],
        "match_condition": MatchConditions.IfNotModified,
    }
    changes = [("update", new, conditional)]
    for key, part in zip(siblings(new, names(new)), parts[1:]):
        sibling = {"PartitionKey": head["PartitionKey"], "RowKey": key, "TablesdkVersion": version}
        changes.append(("create", {**sibling, **dict(part)}))
    for key in siblings(head, names(head)):
        changes.append(("delete", {"PartitionKey": head["PartitionKey"], "RowKey": key}))
    table.submit_transaction(changes)


def main(connection_string):
    table = TableClient.from_connection_string(connection_string, "Tests")
    head, properties = read(table, "ann", "numbers")
    assert properties == {f"P{index:04}": index for index in range(1000)}, properties
    assert len(names(head)) == 3, head["TablesdkParts"]

    head, properties = read(table, "ann", "bytes")
    assert len(names(head)) == 3, head["TablesdkParts"]
    assert properties == {f"P{index:02}": bytes([index]) * 65536 for index in range(50)}

    head, properties = read(table, "ann", "numbers")
    replace(table, head, {name: value + 1 for name, value in properties.items() if name < "P0600"})


main(sys.argv[1])
