"""Tests of a program that keeps orders in a table: with faults, a clock and snapshots, and without sleeps and mocks."""

from datetime import datetime, timedelta, timezone
from email.utils import parsedate_to_datetime

import pytest
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import ClientAuthenticationError, ResourceExistsError, ServiceResponseError
from azure.data.tables import TableClient, TableSasPermissions, TableServiceClient, generate_table_sas

INSERT = ["InsertEntity"]


class Orders:
    """The program under test."""

    def __init__(self, connection_string):
        service = TableServiceClient.from_connection_string(connection_string)
        self.table = service.create_table_if_not_exists("Orders")

    def place(self, customer, number, cents):
        self.table.create_entity({"PartitionKey": customer, "RowKey": number, "Cents": cents})

    def place_once(self, customer, number, cents):
        """As `place`, but if the response is lost, reads whether the order is stored."""
        try:
            self.place(customer, number, cents)
        except ServiceResponseError:
            self.table.get_entity(customer, number)

    def total(self, customer):
        orders = self.table.query_entities("PartitionKey eq @customer", parameters={"customer": customer})
        return sum(order["Cents"] for order in orders)


@pytest.fixture
def orders(server):
    return Orders(server.connection_string)


def seen(requests):
    return [(request["status"], request["attempt"]) for request in requests]


def test_a_busy_service_is_tried_again_after_the_time_that_it_names(server, orders):
    busy = {"kind": "error", "code": "ServerBusy", "retryAfterSeconds": 1}
    fault = server.inject(busy, operations=INSERT, times=2)
    orders.place("ada", "1", 250)
    assert server.hits(fault) == 2
    attempts = server.requests("InsertEntity")
    assert seen(attempts) == [(503, 1), (503, 2), (201, 3)]
    first, *_, last = [datetime.fromisoformat(attempt["time"][:19]) for attempt in attempts]
    assert last - first >= timedelta(seconds=2)
    assert orders.total("ada") == 250


def test_an_insert_whose_response_is_lost_is_not_tried_again(server, orders):
    server.inject({"kind": "loseResponse"}, operations=INSERT, times=1)
    # The client retries no POST after it was sent: the insert may have been carried out. Here it was.
    with pytest.raises(ServiceResponseError):
        orders.place("ada", "1", 250)
    assert seen(server.requests("InsertEntity")) == [(201, 1)]
    assert orders.total("ada") == 250
    # So a program that tries again gets an error for its own order.
    with pytest.raises(ResourceExistsError):
        orders.place("ada", "1", 250)


def test_an_order_is_placed_once_although_the_response_is_lost(server, orders):
    server.inject({"kind": "loseResponse"}, operations=INSERT, times=1)
    orders.place_once("ada", "1", 250)
    assert server.dump() == "Orders\nOrders(PartitionKey='ada',RowKey='1')\n  Cents = 250\n"


def test_an_order_is_placed_once_whichever_response_is_lost(server, orders):
    orders.place("ada", "1", 250)
    for _ in server.at_each_request({"kind": "loseResponse"}):
        orders.place_once("ada", "2", 100)
        orders.place_once("ada", "3", 100)
        assert server.dump().count("Cents = 100\n") == 2


def test_a_truncated_page_is_read_again(server, orders):
    orders.place("ada", "1", 250)
    server.inject({"kind": "truncate", "bytes": 20}, operations=["QueryEntities"], times=1)
    assert orders.total("ada") == 250
    assert seen(server.requests("QueryEntities")) == [(200, 1), (200, 2)]


def test_a_corrupted_page_is_an_error(server, orders):
    orders.place("ada", "1", 250)
    server.inject({"kind": "corrupt"}, operations=["QueryEntities"], times=1)
    # The client does not read it again, and lets the error of the decoder pass.
    with pytest.raises(UnicodeDecodeError):
        orders.total("ada")
    assert seen(server.requests("QueryEntities")) == [(200, 1)]


def test_orders_have_the_time_of_the_server(server, orders):
    server.set_clock("2124-02-29T23:59:59Z")
    orders.place("ada", "1", 250)
    server.advance_clock(3600)
    orders.place("ada", "2", 250)
    times = [order.metadata["timestamp"].isoformat() for order in orders.table.list_entities()]
    assert [time[:19] for time in times] == ["2124-02-29T23:59:59", "2124-03-01T00:59:59"]


def test_responses_have_the_date_of_the_server(server, orders):
    dates = []

    def read():
        orders.table.get_entity("ada", "1", raw_response_hook=lambda read: dates.append(read.http_response.headers["Date"]))

    orders.place("ada", "1", 250)
    read()
    server.set_clock("2124-02-29T23:59:59Z")
    read()
    server.advance_clock(3600)
    read()
    today = parsedate_to_datetime(dates[0])
    assert abs(datetime.now(timezone.utc) - today) < timedelta(minutes=15)
    assert dates[1:] == ["Tue, 29 Feb 2124 23:59:59 GMT", "Wed, 01 Mar 2124 00:59:59 GMT"]


def test_a_signature_expires(server, orders):
    parts = dict(part.split("=", 1) for part in server.connection_string.strip(";").split(";"))
    key = AzureNamedKeyCredential(parts["AccountName"], parts["AccountKey"])
    expiry = datetime.now(timezone.utc) + timedelta(days=30)
    sas = generate_table_sas(key, "Orders", permission=TableSasPermissions(read=True), expiry=expiry)
    reader = TableClient(server.endpoint, "Orders", credential=AzureSasCredential(sas))
    server.advance_clock(29 * 24 * 3600)
    assert list(reader.list_entities()) == []
    server.advance_clock(2 * 24 * 3600)
    with pytest.raises(ClientAuthenticationError):
        list(reader.list_entities())


def test_a_snapshot_is_restored(server, orders):
    server.load('{"table":"Orders","entity":{"PartitionKey":"ada","RowKey":"0","Cents":100}}')
    snapshot = server.snapshot()
    for number in ["1", "2"]:
        orders.place("ada", number, 250)
        assert orders.total("ada") == 350
        server.restore(snapshot)
    assert orders.total("ada") == 100


def test_requests_beyond_the_rate_are_refused(server, orders):
    server.set_clock("2124-02-29T23:59:59Z")
    server.throttle(perPartition=1)
    orders.place("ada", "1", 250)
    no_retries = TableClient.from_connection_string(server.connection_string, "Orders", retry_total=0)
    with pytest.raises(Exception, match="ServerBusy"):
        no_retries.create_entity({"PartitionKey": "ada", "RowKey": "2"})
    server.advance_clock(1)
    no_retries.create_entity({"PartitionKey": "ada", "RowKey": "2"})


def test_a_scan_is_reported_and_a_partition_is_not(server, orders):
    orders.place("ada", "1", 250)
    orders.total("ada")
    assert server.lints() == []
    list(orders.table.query_entities("Cents gt 100"))
    [scan] = server.lints()
    assert scan["kind"] == "Scan" and scan["table"] == "Orders"
    assert "Restrict the query to a partition" in scan["text"]


def test_a_wrong_rule_is_refused_by_name(server):
    with pytest.raises(ValueError, match="fault: unknown field `times`"):
        server.inject({"kind": "loseResponse", "times": 1})
