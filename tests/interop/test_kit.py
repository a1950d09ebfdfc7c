"""Compares the server's kit for tests with its description, and with the examples of the page for other languages.

Run by run.sh, with the fixture of examples/other_languages/python.
"""

import json
import os
import re
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from azure.data.tables import TableServiceClient
from conftest import TableServer
from jsonschema import Draft202012Validator

README = Path(__file__).parents[2] / "examples/other_languages/README.md"

RESET = {"kind": "reset"}
FAULTS = [
    {"kind": "error", "code": "ServerBusy"},
    {"kind": "error", "code": "ServerBusy", "retryAfterSeconds": 0.5, "applied": True},
    {"kind": "error", "code": "OperationTimedOut", "appliedAfterSeconds": 86400},
    {"kind": "reset"},
    {"kind": "reset", "applied": True},
    {"kind": "loseResponse"},
    {"kind": "noResponse", "appliedAfterSeconds": 0},
    {"kind": "delay", "seconds": 1},
    {"kind": "delayResponse", "seconds": 1.5},
    {"kind": "duplicate"},
    {"kind": "truncate", "bytes": 10},
    {"kind": "corrupt"},
    {"kind": "chaos"},
]
RULES = [{"fault": fault} for fault in FAULTS] + [
    {"operations": ["InsertEntity", "QueryEntities"], "account": "a", "table": "b", "fault": RESET},
    {"partitionKey": "", "rowKey": "1", "skip": 1, "times": 2, "fault": RESET},
    {"nth": 1, "probability": 0.5, "seed": 2**64 - 1, "fault": RESET},
]
WRONG_RULES = [
    {},
    {"fault": None},
    {"fault": "reset"},
    {"fault": ["reset"]},
    {"fault": {}},
    {"fault": {"kind": "quake"}},
    {"fault": {"kind": "error"}},
    {"fault": {"kind": "error", "code": 7}},
    {"fault": {"kind": "error", "code": "ServerBusy", "retryAfterSeconds": -1}},
    {"fault": {"kind": "reset", "appliedAfterSeconds": 86401}},
    {"fault": {"kind": "delay"}},
    {"fault": {"kind": "delay", "seconds": "1"}},
    {"fault": {"kind": "truncate", "bytes": -1}},
    {"fault": {"kind": "truncate", "bytes": 1.5}},
    {"fault": {"kind": "loseResponse", "times": 1}},
    {"operations": ["Quake"], "fault": RESET},
    {"operations": [], "fault": RESET},
    {"nth": 0, "fault": RESET},
    {"times": -1, "fault": RESET},
    {"probability": 1.5, "fault": RESET},
    {"table": 7, "fault": RESET},
    {"table": None, "fault": RESET},
    {"tables": "a", "fault": RESET},
]
CLOCKS = [
    {"kind": "freeze"},
    {"kind": "advance", "seconds": 3155760000},
    {"kind": "set", "time": "2024-02-29T12:00:00Z"},
    {"kind": "resume"},
]
WRONG_CLOCKS = [
    {"kind": "freeze", "seconds": 1},
    {"kind": "advance", "seconds": 3155760001},
    {"kind": "advance"},
    {"kind": "set", "time": 7},
    {"kind": "stop"},
]
THROTTLES = [{}, {"perPartition": 2000, "perAccount": 2**32 - 1}, {"perRange": 5000}]
WRONG_THROTTLES = [{"perPartition": -1}, {"perAccount": 2**32}, {"perRange": 1.5}, {"perTable": 1}]
PARTITIONS = [{"kind": kind, "partitionKey": "m"} for kind in ["split", "move", "merge"]]
WRONG_PARTITIONS = [
    {"kind": "split"},
    {"kind": "quake", "partitionKey": "m"},
    {"kind": "merge", "partitionKey": 7},
    {"kind": "move", "partitionKey": "m", "seconds": 1},
]
ENTITY = '{"table":"Orders","entity":{"PartitionKey":"ada","RowKey":"1","Cents":250}}'


class Kit:
    """Sends requests, and compares them and their responses with the description."""

    def __init__(self, server):
        self.server = server
        self.description = server.call("GET", "/openapi.json")
        self.seen = set()

    def validator(self, schema):
        return Draft202012Validator({**closed(schema), "components": closed(self.description["components"])})

    def call(self, method, path, body=None):
        """The status and the body of a response that fits its description."""
        item = self.operation(path)
        operation = item[method.lower()]
        content = body.encode() if isinstance(body, str) else None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.server.kit + path, content, method=method)
        try:
            response = self.server.opener.open(request, timeout=60)
        except urllib.error.HTTPError as error:
            response = error
        with response:
            received = response.read()
            described = operation["responses"][str(response.status)]
            kind = response.headers.get_content_type() if received else None
        if "$ref" in described:
            described = self.description["components"]["responses"][described["$ref"].rsplit("/", 1)[1]]
        schemas = described.get("content", {})
        assert list(schemas) == ([kind] if kind else []), f"{method} {path}"
        value = json.loads(received) if kind == "application/json" else received.decode()
        if kind:
            self.validator(schemas[kind]["schema"]).validate(value)
        if "requestBody" in operation:
            [(kind, media)] = operation["requestBody"]["content"].items()
            if kind == "application/json":
                is_described = self.validator(media["schema"]).is_valid(body)
                assert is_described == (response.status < 300), f"{body}: {response.status} {value}"
        if response.status < 300:
            self.seen.add((method, item["path"]))
        return response.status, value

    def operation(self, path):
        for template, item in self.description["paths"].items():
            pattern = re.sub(r"\{\w+\}", "[^/]+", template)
            if re.fullmatch(pattern, path):
                return {**item, "path": template}
        raise AssertionError(f"{path} is not described")

    def operations(self):
        paths = self.description["paths"].items()
        return {(method.upper(), path) for path, item in paths for method in item if method != "parameters"}


def closed(schema):
    """The same schema without further properties than those that it names."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    parts = {name: closed(part) for name, part in schema.items()}
    if schema.get("type") == "object" and "properties" in schema:
        parts["additionalProperties"] = False
    return parts


@pytest.fixture
def kit(server):
    return Kit(server)


def test_schemas_are_valid(kit):
    for schema in kit.description["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)


def test_responses_and_accepted_bodies_fit_the_description(kit):
    for rule in RULES:
        status, created = kit.call("POST", "/faults", rule)
        assert status == 201
        assert kit.call("GET", f"/faults/{created['id']}") == (200, {"hits": 0})
        in_force = kit.call("GET", "/faults")[1]
        assert [found["id"] for found in in_force] == [created["id"]]
        assert kit.call("DELETE", f"/faults/{created['id']}")[0] == 204
    for change in CLOCKS:
        assert kit.call("POST", "/clock", change)[0] == 200
    for rates in THROTTLES:
        assert kit.call("PUT", "/throttle", rates)[0] == 204
        assert kit.call("GET", "/throttle") == (200, rates)
    assert len(kit.call("GET", "/partitions/Orders")[1]) == 1
    for change, ranges in zip(PARTITIONS, [2, 2, 1]):
        status, found = kit.call("POST", "/partitions/Orders", change)
        assert (status, len(found)) == (200, ranges)
    assert kit.call("DELETE", "/faults")[0] == 204
    assert kit.call("POST", "/entities", ENTITY)[0] == 204
    _, snapshot = kit.call("POST", "/snapshots")
    assert [kept["id"] for kept in kit.call("GET", "/snapshots")[1]] == [snapshot["id"]]
    assert kit.call("POST", f"/snapshots/{snapshot['id']}/restore")[0] == 204
    assert kit.call("DELETE", f"/snapshots/{snapshot['id']}")[0] == 204
    for path in ["/clock", "/cost", "/dump", "/entities", "/lints", "/openapi.json", "/requests", "/requests/after/0"]:
        assert kit.call("GET", path)[0] == 200
    assert kit.call("DELETE", "/requests")[0] == 204
    assert kit.call("POST", "/reset")[0] == 204
    assert kit.seen == kit.operations()


def test_refused_bodies_do_not_fit_the_description(kit):
    wrong = [("POST", "/faults", WRONG_RULES), ("POST", "/clock", WRONG_CLOCKS), ("PUT", "/throttle", WRONG_THROTTLES)]
    wrong.append(("POST", "/partitions/Orders", WRONG_PARTITIONS))
    for method, path, bodies in wrong:
        for body in [None, 7, [], *bodies]:
            assert kit.call(method, path, "null" if body is None else body)[0] == 400, body
    assert kit.call("POST", "/entities", "quake")[0] == 400
    assert kit.call("POST", "/clock", " " * (1 << 20) + "{}")[0] == 413
    for method, path in [("GET", "/faults/7"), ("DELETE", "/snapshots/x"), ("POST", "/snapshots/7/restore")]:
        assert kit.call(method, path)[0] == 404


def test_recorded_requests_and_lints_fit_the_description(kit):
    service = TableServiceClient.from_connection_string(kit.server.connection_string, retry_total=0)
    table = service.create_table("Orders")
    orders = [{"PartitionKey": "ada", "RowKey": f"{number:03}"} for number in range(100)]
    table.submit_transaction([("create", order) for order in orders])
    table.upsert_entity(orders[0])
    list(table.list_entities(results_per_page=60, select=["RowKey"]))
    for fault, attempt in [
        ({"kind": "reset"}, lambda: table.get_entity("ada", "001")),
        ({"kind": "error", "code": "InternalError"}, lambda: table.delete_entity("ada", "001")),
        (None, lambda: table.get_entity("ada", "quake")),
        (None, lambda: service.get_table_client("Quake").create_entity(orders[0])),
    ]:
        if fault:
            kit.server.inject(fault, times=1)
        with pytest.raises(Exception):
            attempt()
    # Not authenticated, and without a client request id.
    with pytest.raises(urllib.error.HTTPError):
        kit.server.opener.open(f"{kit.server.endpoint}/Orders", timeout=60)
    _, requests = kit.call("GET", "/requests")
    assert kit.call("GET", f"/requests/after/{requests[0]['number']}") == (200, requests[1:])
    assert sum(request["fault"] is not None for request in requests) == 2
    seen = {request["operation"] for request in requests}
    assert seen >= {None, "Batch", "CreateTable", "InsertOrMergeEntity", "QueryEntities", "QueryEntity"}
    assert {None, 404, 500} <= {request["status"] for request in requests}
    _, cost = kit.call("GET", "/cost")
    assert cost["transactions"] + cost["unbilled"] == len(requests)
    assert cost["bytesIn"] == sum(request["bytesIn"] for request in requests)
    # The one that was reset, the error of the server, and the one that was not authenticated.
    assert (cost["batches"], cost["unbilled"]) == (1, 3)
    _, lints = kit.call("GET", "/lints")
    assert "Scan" in {lint["kind"] for lint in lints}


def test_web_pages_are_refused_as_described(kit):
    request = urllib.request.Request(f"{kit.server.kit}/reset", method="POST", headers={"Origin": "http://example.com"})
    with pytest.raises(urllib.error.HTTPError) as refused:
        kit.server.opener.open(request, timeout=60)
    with refused.value as response:
        described = kit.description["components"]["responses"]["NotForWebPages"]["content"]
        assert (response.status, list(described)) == (403, [response.headers.get_content_type()])
        kit.validator(described["application/json"]["schema"]).validate(json.load(response))


def test_the_examples_of_the_page_work():
    commands = re.findall(r"`(curl [^`]+)`", README.read_text())
    # Its ids are those of a new server.
    server = TableServer()
    try:
        kit = Kit(server)
        shown = set()
        for command in commands:
            environment = {**os.environ, "KIT": server.kit, "NO_PROXY": "127.0.0.1"}
            done = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True)
            assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
            path = re.search(r"\$KIT(/\S+)", command)[1]
            method = re.search(r"-X (\w+)", command)
            item = kit.operation(path)
            shown.add((method[1] if method else "POST" if " -d" in command else "GET", item["path"]))
        assert shown == kit.operations()
    finally:
        server.stop()
