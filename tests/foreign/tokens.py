"""Writes and reads with the official Python client, which has a credential of Microsoft Entra ID.

Usage: tokens.py ENDPOINT CERTIFICATE
"""

import sys
import time

from azure.core.credentials import AccessToken
from azure.data.tables import TableServiceClient


class Credential:
    """Stands in for one of azure-identity, and issues a token of its own."""

    scopes = []

    def get_token(self, *scopes, **_):
        self.scopes.extend(scopes)
        return AccessToken("a token that nobody has signed", int(time.time()) + 3600)


endpoint, certificate = sys.argv[1:]
credential = Credential()
with TableServiceClient(endpoint, credential=credential, connection_verify=certificate) as service:
    table = service.create_table("Orders")
    table.create_entity({"PartitionKey": "ada", "RowKey": "1", "Cents": 250})
    table.submit_transaction([("upsert", {"PartitionKey": "ada", "RowKey": "2", "Cents": 100})])
    assert sum(order["Cents"] for order in table.list_entities()) == 350
    table.delete_entity("ada", "1")
    assert [found.name for found in service.list_tables()] == ["Orders"]
    service.delete_table("Orders")
assert credential.scopes == ["https://storage.azure.com/.default"], credential.scopes
