"""Drives the flavor CosmosDb of our server with the official Python client, which takes `localhost` for Cosmos DB.

Usage: cosmos.py CONNECTION_STRING
"""

import sys
import uuid

from azure.core import MatchConditions
from azure.core.exceptions import (
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.data.tables import TableServiceClient, TableTransactionError, UpdateMode


def refused(error_type, call):
    try:
        result = call()
    except error_type as error:
        return error
    raise AssertionError(f"expected {error_type.__name__}, got {result!r}")


def main(connection_string):
    service = TableServiceClient.from_connection_string(connection_string, retry_total=0)
    assert service._cosmos_endpoint, "the client does not take the endpoint for Cosmos DB"
    name = "python" + uuid.uuid4().hex
    table = service.create_table(name)

    # Insert and read: the keys stand among the properties, and a DateTime has seven digits.
    created = table.create_entity({"PartitionKey": "p", "RowKey": "0", "N": 0})
    refused(ResourceExistsError, lambda: table.create_entity({"PartitionKey": "p", "RowKey": "0"}))
    refused(HttpResponseError, lambda: table.create_entity({"PartitionKey": "p", "RowKey": ""}))
    read = table.get_entity("p", "0")
    assert dict(read) == {"PartitionKey": "p", "RowKey": "0", "N": 0}, read
    assert read.metadata["etag"] == created["etag"]
    refused(ResourceNotFoundError, lambda: table.get_entity("p", "none"))

    # The ETag: the merge is a POST with X-HTTP-Method.
    changed = {"PartitionKey": "p", "RowKey": "0", "N": 1}
    same = {"mode": UpdateMode.MERGE, "match_condition": MatchConditions.IfNotModified}
    table.update_entity(changed, etag=created["etag"], **same)
    refused(
        ResourceModifiedError,
        lambda: table.update_entity(changed, etag=created["etag"], **same),
    )

    # A transaction of every kind of change.
    def row(key, **properties):
        return {"PartitionKey": "p", "RowKey": key, **properties}

    results = table.submit_transaction(
        [
            ("create", row("1", N=1)),
            ("upsert", row("2", N=2), {"mode": UpdateMode.MERGE}),
            ("upsert", row("3", N=3), {"mode": UpdateMode.REPLACE}),
            ("update", row("0", A="a"), {"mode": UpdateMode.MERGE}),
        ]
    )
    assert all(result["etag"] for result in results), results
    table.submit_transaction([("delete", row("3"))])
    assert dict(table.get_entity("p", "0")) == row("0", N=1, A="a")

    # One that fails changes nothing, and names the change.
    error = refused(
        TableTransactionError,
        lambda: table.submit_transaction([("create", row("4")), ("create", row("1"))]),
    )
    assert (error.status_code, error.index) == (409, 1), error
    refused(ResourceNotFoundError, lambda: table.get_entity("p", "4"))

    # Queries and pages.
    found = table.query_entities("PartitionKey eq @p and N ge @n", parameters={"p": "p", "n": 1})
    assert [entity["RowKey"] for entity in found] == ["0", "1", "2"]
    pages = table.list_entities(results_per_page=2).by_page()
    assert len(list(next(pages))) == 2
    rest = table.list_entities(results_per_page=2).by_page(pages.continuation_token)
    assert [entity["RowKey"] for page in rest for entity in page] == ["2"]
    error = refused(HttpResponseError, service.get_service_properties)
    assert error.status_code == 501, error

    service.delete_table(name)
    print("ok: the Python client and Cosmos DB")


if __name__ == "__main__":
    main(sys.argv[1])
