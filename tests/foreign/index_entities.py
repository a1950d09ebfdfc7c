"""Reads and keeps the index entities of the design guide with the official Python client.

Usage: index_entities.py CONNECTION_STRING FOLDER

`index_entities.rs` writes employees and lists before, and reads those that this program writes. The folder is the object store.
"""

import hashlib
import re
import sys
import uuid
from pathlib import Path

from azure.core import MatchConditions
from azure.data.tables import TableClient, UpdateMode

IF_UNCHANGED = {"mode": UpdateMode.REPLACE, "match_condition": MatchConditions.IfNotModified}


def equal(found, expected):
    assert found == expected, f"{found!r} instead of {expected!r}"


def changed(entity):
    """The change that replaces an entity if its ETag is the one that was read."""
    return ("update", entity, {**IF_UNCHANGED, "etag": entity.metadata["etag"]})


def hire(table, department, number, last_name):
    """Inserts an employee, and adds the number to the list, in one transaction."""
    ids = table.get_entity(department, last_name)
    ids["EmployeeIDs"] = ",".join(sorted(ids["EmployeeIDs"].split(",") + [number]))
    employee = {"PartitionKey": department, "RowKey": number, "LastName": last_name}
    table.submit_transaction([("create", employee), changed(ids)])


def rename(table, department, number, last_name):
    """Changes the name of an employee, and two lists, of which the second one is new."""
    employee = table.get_entity(department, number)
    before = table.get_entity(department, employee["LastName"])
    before["EmployeeIDs"] = ",".join(it for it in before["EmployeeIDs"].split(",") if it != number)
    employee["LastName"] = last_name
    after = {"PartitionKey": department, "RowKey": last_name, "EmployeeIDs": number}
    table.submit_transaction([changed(employee), changed(before), ("create", after)])


def read_object(folder, reference):
    """The lines of an object, which has the length and the checksum of its reference."""
    path, length, checksum = re.fullmatch(r"(.+)\?length=(\d+)&sha256=([0-9a-f]{64})", reference).groups()
    content = (folder / path).read_bytes()
    equal(len(content), int(length))
    equal(hashlib.sha256(content).hexdigest(), checksum)
    return content.decode().split("\n")


def put_object(folder, lines):
    """Writes a new object, and returns its reference."""
    content = "\n".join(lines).encode()
    path = f"last-names/{uuid.uuid4()}"
    (folder / path).write_bytes(content)
    return f"{path}?length={len(content)}&sha256={hashlib.sha256(content).hexdigest()}"


def keep_in_partition(table):
    equal(table.get_entity("Sales", "Jones")["EmployeeIDs"], "000152,000223")
    equal(table.get_entity("Legal", "Jones")["EmployeeIDs"], "000007")
    hire(table, "Sales", "000301", "Jones")
    rename(table, "Sales", "000223", "Smith")


def keep_in_other_partitions(lists):
    jones = lists.get_entity("Jones", "Jones")
    lines = jones["EmployeeDetails"].split("\n")
    equal(lines, ["Legal/000007", "Sales/000152", "Sales/000223"])
    jones["EmployeeDetails"] = "\n".join(lines[:2] + ["Sales/000301"])
    lists.update_entity(jones, etag=jones.metadata["etag"], **IF_UNCHANGED)
    smith = {"PartitionKey": "Smith", "RowKey": "Smith", "EmployeeDetails": "Sales/000223"}
    lists.create_entity(smith)


def keep_in_objects(lists, folder):
    li = lists.get_entity("Li", "Li")
    assert "EmployeeDetails" not in li, li
    lines = read_object(folder, li["EmployeeDetailsObject"])
    equal((len(lines), lines[152]), (100_000, "Sales/000152"))
    li["EmployeeDetailsObject"] = put_object(folder, ["Legal/000008"] + lines)
    lists.update_entity(li, etag=li.metadata["etag"], **IF_UNCHANGED)


def main():
    connection_string, folder = sys.argv[1], Path(sys.argv[2])
    keep_in_partition(TableClient.from_connection_string(connection_string, table_name="Tests"))
    lists = TableClient.from_connection_string(connection_string, table_name="LastNames")
    keep_in_other_partitions(lists)
    keep_in_objects(lists, folder)


main()
