"""Acquires leases with the official Python client, by their documented form.

Usage: leases.py CONNECTION_STRING

`leases.rs` has the other holders.
"""

import sys
import time
import uuid

from azure.core import MatchConditions
from azure.core.exceptions import ResourceNotFoundError
from azure.data.tables import EdmType, EntityProperty, TableClient, TableTransactionError, UpdateMode


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


def fence(table, key, version, entity):
    """Inserts an entity in one transaction with a renewal. Returns the new version of the lease."""
    lease = {"PartitionKey": key[0], "RowKey": key[1], "DurationMs": int64(60_000)}
    condition = {"etag": version["etag"], "match_condition": MatchConditions.IfNotModified}
    renewal = ("update", lease, {"mode": UpdateMode.MERGE, **condition})
    return table.submit_transaction([renewal, ("create", {"PartitionKey": key[0], "RowKey": entity})])[0]


def acquire(table, key, milliseconds):
    """Acquires a lease when it is free, or when its entity has not changed for its duration and a tenth of it."""
    etag, since = None, time.monotonic()
    while True:
        found = get(table, *key)
        if found and found.metadata["etag"] != etag:
            etag, since = found.metadata["etag"], time.monotonic()
        duration = found["DurationMs"].value / 1000 if found else 0
        if not duration or time.monotonic() - since >= duration * 1.1:
            break
        time.sleep(duration / 8)
    token = found["Token"].value + 1 if found else 1
    lease = {"Holder": "python", "Token": int64(token), "LeaseId": uuid.uuid4(), "DurationMs": int64(milliseconds)}
    return token, write(table, key, found and found.metadata, lease)


def main():
    table = TableClient.from_connection_string(sys.argv[1], "Tests")
    lease = ("payroll", "released")
    released, acquired = acquire(table, lease, 60_000)
    renewed = fence(table, lease, acquired, "fenced")
    write(table, lease, renewed, {"DurationMs": int64(0)})
    try:
        fence(table, lease, renewed, "late")
        raise AssertionError("it has been released")
    except TableTransactionError as error:
        equal(error.status_code, 412)
    expired, _ = acquire(table, ("payroll", "expired"), 60_000)
    ended, _ = acquire(table, ("payroll", "new"), 500)
    equal((released, expired, ended), (2, 2, 1))


main()
