"""Measures the official Python client against a server of fixed bytes: processor time per operation.

Usage: peer.py CONNECTION_STRING
"""

import sys
import time

from azure.data.tables import TableClient

entities = [
    {
        "PartitionKey": "sales",
        "RowKey": f"{number:010}",
        "FirstName": f"Firstname{number:08}",
        "LastName": f"Lastname{number:08}",
        "Email": f"employee{number:08}@contoso.example",
        "Department": "Research and development",
        "Age": number,
        "Salary": number * 101.25,
        "Remote": number % 2 == 0,
    }
    for number in range(100)
]
table = TableClient.from_connection_string(sys.argv[1], "people")
operations = {
    "point-read": (200, lambda: table.get_entity("sales", "0000000007")),
    "insert": (200, lambda: table.create_entity(entities[0])),
    "page": (5, lambda: len(list(table.query_entities("PartitionKey eq 'sales'")))),
    "batch": (10, lambda: table.submit_transaction([("create", entity) for entity in entities])),
}
for name, (count, operation) in operations.items():
    operation()
    start = time.process_time()
    for _ in range(count):
        operation()
    print(f"{name}\t{(time.process_time() - start) / count * 1e6}")
