"""Reads a series with the official Python client by its documented form, and merges slots.

Usage: series.py CONNECTION_STRING

`series.rs` writes the entity before, and reads it afterwards.
"""

import sys

from azure.data.tables import EdmType, EntityProperty, TableClient, UpdateMode


def equal(found, expected):
    assert found == expected, f"{found!r} instead of {expected!r}"


def series(entity, prefix, slots):
    """The values of the slots, and None for each without a value."""
    digits = len(str(slots - 1))
    return [entity.get(f"{prefix}{slot:0{digits}}") for slot in range(slots)]


def main():
    table = TableClient.from_connection_string(sys.argv[1], "Tests")
    day = table.get_entity("ann", "2024-03-15")
    hours = series(day, "H", 24)
    equal({slot: value for slot, value in enumerate(hours) if value is not None}, {0: 3, 9: 42, 23: 1})
    seconds = series(day, "S", 101)
    equal(seconds[:100], [None] * 100)
    equal(seconds[100], EntityProperty(1 << 40, EdmType.INT64))
    equal(len(day), 2 + 4)

    change = {"PartitionKey": "ann", "RowKey": "2024-03-15", "H10": 17, "S007": EntityProperty(1 << 41, EdmType.INT64)}
    table.upsert_entity(change, mode=UpdateMode.MERGE)


main()
