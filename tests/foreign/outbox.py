"""Reads the steps and messages of an outbox with the official Python client.

Usage: outbox.py CONNECTION_STRING

`outbox.rs` writes them before, and a worker applies them afterwards.
"""

import json
import sys

from azure.data.tables import EdmType, EntityProperty, TableClient

PREFIX = "~tablesdk.outbox."


def equal(found, expected):
    assert found == expected, f"{found!r} instead of {expected!r}"


def main():
    table = TableClient.from_connection_string(sys.argv[1], table_name="Tests")
    rows = list(table.list_entities())
    of_program = [row for row in rows if not row["RowKey"].startswith(PREFIX)]
    equal([(row["PartitionKey"], row["RowKey"]) for row in of_program], [("Sales", "dept")])

    head, step, message = table.query_entities("PartitionKey eq 'Sales' and RowKey ne 'dept'")
    equal(head["RowKey"], PREFIX + "head")
    equal(head["TablesdkNext"], EntityProperty(3, EdmType.INT64))
    equal(step["RowKey"], f"{PREFIX}log.{1:020}")
    target = [step[name] for name in ("TablesdkTable", "TablesdkPartitionKey", "TablesdkRowKey")]
    equal(target, ["Titles", "Sales", "title"])
    equal(step["TablesdkStep"], "upsert_replace")
    # The properties of the entity have their own names and types.
    equal((step["Title"], step["Floor"]), ("Sales", EntityProperty(3, EdmType.INT64)))
    equal((message["TablesdkStep"], message["TablesdkMessage"]), ("message", "renamed"))
    equal(json.loads(message["TablesdkBody"]), {"title": "Sales"})

    [pointer] = [row for row in rows if row["PartitionKey"].startswith(PREFIX)]
    equal(pointer["TablesdkPartition"], "Sales")
    assert pointer["RowKey"].endswith(step["TablesdkPointer"]), pointer


main()
