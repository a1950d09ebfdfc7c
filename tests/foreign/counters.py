"""Takes numbers of a sequence and adds to a counter with the official Python client, by their documented forms.

Usage: counters.py CONNECTION_STRING

`counters.rs` has the other clients.
"""

import sys
import uuid

from azure.core import MatchConditions
from azure.core.exceptions import ResourceNotFoundError
from azure.data.tables import EdmType, EntityProperty, TableClient, UpdateMode


def equal(found, expected):
    assert found == expected, f"{found!r} instead of {expected!r}"


def int64(number):
    return EntityProperty(number, EdmType.INT64)


def get(table, *key):
    try:
        return table.get_entity(*key)
    except ResourceNotFoundError:
        return None


def write(table, key, version, properties):
    """A conditional write: an insert, or a merge under the ETag of a version. Returns the new version."""
    entity = {"PartitionKey": key[0], "RowKey": key[1], **properties}
    if version is None:
        return table.create_entity(entity)
    condition = {"etag": version["etag"], "match_condition": MatchConditions.IfNotModified}
    return table.update_entity(entity, mode=UpdateMode.MERGE, **condition)


def add(table, row, client, number, amount):
    """Adds to a shard of a counter, as the client that wrote it last."""
    found = get(table, "home", row)
    writers = found["Writers"].split(" ") if found else []
    others = [writer for writer in writers if not writer.startswith(f"{client}:")]
    writers = " ".join([f"{client}:{number}", *others][:32])
    count = (found["Count"].value if found else 0) + amount
    write(table, ("home", row), found and found.metadata, {"Count": int64(count), "Writers": writers})


def main():
    table = TableClient.from_connection_string(sys.argv[1], "Tests")
    numbers = get(table, "numbers", "claims")
    equal(numbers["Next"], int64(4))
    write(table, ("numbers", "claims"), numbers.metadata, {"Next": int64(14)})
    write(table, ("numbers", "letters"), None, {"Next": int64(1000)})

    names = [f"views~{number:02}" for number in range(100)]
    shards = table.query_entities("PartitionKey eq 'home' and RowKey ge 'views~00' and RowKey le 'views~99'")
    shards = [shard for shard in shards if shard["RowKey"] in names]
    equal(sum(shard["Count"].value for shard in shards), 5)
    for amount in range(20):
        add(table, "views~00", str(uuid.uuid4()), 1, amount)
    # More clients than a shard remembers.
    for amount in range(40):
        add(table, "views~01", str(uuid.uuid4()), 1, amount)
    client = str(uuid.uuid4())
    for number in range(1, 4):
        add(table, "views~99", client, number, -10)


main()
