"""Reads the entries of indexes with the official Python client, and writes employees as a program that does not know the indexes.

Usage: indexes.py CONNECTION_STRING

`indexes.rs` writes the employees before, and repairs the indexes afterwards.
"""

import sys
import uuid

from azure.core import MatchConditions
from azure.data.tables import EdmType, EntityProperty, TableClient, UpdateMode


def equal(found, expected):
    assert found == expected, f"{found!r} instead of {expected!r}"


def row_keys(table, prefix):
    after = prefix[:-1] + chr(ord(prefix[-1]) + 1)
    query = "PartitionKey eq 'Sales' and RowKey ge @prefix and RowKey lt @after"
    found = table.query_entities(query, parameters={"prefix": prefix, "after": after})
    return [entity["RowKey"] for entity in found]


def read_entries(table):
    by_email = table.get_entity("Sales", "email_ada@contoso.com")
    equal(
        dict(by_email),
        {
            "PartitionKey": "Sales",
            "RowKey": "email_ada@contoso.com",
            "TablesdkIndex": "Employee.ByEmail",
            "Id": EntityProperty(1, EdmType.INT64),
            "LastName": "Lovelace",
            "Email": "ada@contoso.com",
            "Age": 36,
        },
    )
    employee = table.get_entity("Sales", f"empid_{by_email['Id'].value:06}")
    equal(employee["Email"], "ada@contoso.com")
    equal(row_keys(table, "name_Hopper_"), ["name_Hopper_000002", "name_Hopper_000003"])
    by_name = table.get_entity("Sales", "name_Hopper_000003")
    equal(by_name["TablesdkIndex"], "Employee.ByName")
    assert "Email" not in by_name, by_name


def read_entries_in_other_partitions(table):
    query = "PartitionKey eq 'name_Hopper'"
    entries = list(table.query_entities(query))
    equal([entity["RowKey"] for entity in entries], ["in_Sales_000002", "in_Sales_000003"])
    equal(
        dict(entries[0]),
        {
            "PartitionKey": "name_Hopper",
            "RowKey": "in_Sales_000002",
            "TablesdkIndex": "Employee.CompanyByName",
            "LastName": "Hopper",
            "Email": "grace@contoso.com",
            "Age": 36,
        },
    )


def read_unique_entry(table):
    entry = table.get_entity("email_Sales", "ada@contoso.com")
    equal(
        dict(entry),
        {
            "PartitionKey": "email_Sales",
            "RowKey": "ada@contoso.com",
            "TablesdkIndex": "Employee.UniqueEmail",
            "Id": EntityProperty(1, EdmType.INT64),
            "LastName": "Lovelace",
            "Email": "ada@contoso.com",
            "Age": 36,
        },
    )
    employee = table.get_entity("empid_Sales", f"{entry['Id'].value:06}")
    equal(employee["Email"], "ada@contoso.com")


def reserve(table, ident, email):
    """The first two of four steps by which a program writes an employee with a unique email."""
    ticket = uuid.uuid4()
    ticket_key = {"PartitionKey": "empid_Sales", "RowKey": f"~tablesdk.ticket.{ticket}"}
    etag = table.create_entity(ticket_key)["etag"]
    properties = {"LastName": "Jones", "Email": email, "Age": 36}
    entry = {
        "PartitionKey": "email_Sales",
        "RowKey": email,
        "TablesdkIndex": "Employee.UniqueEmail",
        "Id": EntityProperty(ident, EdmType.INT64),
        **properties,
    }
    reserved = table.create_entity({**entry, "TablesdkTicket": ticket})
    return ticket_key, etag, entry, reserved["etag"], properties


def insert_with_unique_email(table, ident, email):
    ticket, etag, entry, reserved, properties = reserve(table, ident, email)
    employee = {"PartitionKey": "empid_Sales", "RowKey": f"{ident:06}", **properties}
    use_ticket = {"etag": etag, "match_condition": MatchConditions.IfNotModified}
    table.submit_transaction([("create", employee), ("delete", ticket, use_ticket)])
    table.update_entity(
        entry, mode=UpdateMode.REPLACE, etag=reserved, match_condition=MatchConditions.IfNotModified
    )


def read_entries_in_another_table(table):
    """The entries have the keys of the design guide, and of the properties the email alone."""
    entries = list(table.query_entities("PartitionKey eq 'Hopper'"))
    mark = {"PartitionKey": "Hopper", "TablesdkIndex": "Employee.ByName"}
    expected = [
        {**mark, "RowKey": "Sales_000002", "Email": "grace@contoso.com"},
        {**mark, "RowKey": "Sales_000003"},
    ]
    equal([dict(entity) for entity in entries], expected)


def write_employees(table):
    other_email = {"PartitionKey": "Sales", "RowKey": "empid_000002", "Email": "hopper@contoso.com"}
    table.update_entity(other_email, mode=UpdateMode.MERGE)
    table.delete_entity("Sales", "empid_000004")
    new = {"PartitionKey": "Sales", "RowKey": "empid_000005", "LastName": "Jones", "Age": 36}
    table.create_entity({**new, "Email": "jones@contoso.com"})


def main():
    table = TableClient.from_connection_string(sys.argv[1], table_name="Tests")
    read_entries(table)
    write_employees(table)
    table = TableClient.from_connection_string(sys.argv[1], table_name="Elsewhere")
    read_entries_in_other_partitions(table)
    write_employees(table)
    table = TableClient.from_connection_string(sys.argv[1], table_name="Unique")
    read_unique_entry(table)
    insert_with_unique_email(table, 5, "jones@contoso.com")
    # It stops before it writes the employee.
    reserve(table, 6, "smith@contoso.com")
    table = TableClient.from_connection_string(sys.argv[1], table_name="InTableByName")
    read_entries_in_another_table(table)


main()
