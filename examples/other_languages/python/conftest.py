"""A table server for the tests of a directory, with faults, recorded requests, a clock and snapshots.

Copy this file next to your tests. It needs Python 3.10, pytest and the program `tablesdk-server`: in PATH, or named by TABLESDK_SERVER.
A test that takes the fixture `server` gets an empty server; its client connects with `server.connection_string`.
"""

import itertools
import json
import os
import subprocess
import urllib.error
import urllib.request

import pytest


class TableServer:
    """A running `tablesdk-server --test`. `GET /test/openapi.json` describes the bodies of rules and requests."""

    def __init__(self):
        program = os.environ.get("TABLESDK_SERVER", "tablesdk-server")
        # The server ends with its standard input: in `stop`, or when this process ends.
        command = [program, "--test", "--exit-with-stdin"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{program} --test ended with {self.process.wait()}")
        started = json.loads(line)
        self.connection_string = started["connectionString"]
        self.endpoint = started["endpoint"]
        self.kit = started["test"]
        # Without the proxies of the environment.
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def stop(self):
        self.process.communicate()

    def call(self, method, path, body=None):
        """Sends a request to the kit. A refusal raises ValueError with the reason."""
        content = body.encode() if isinstance(body, str) else json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(self.kit + path, content, method=method)
        try:
            with self.opener.open(request, timeout=60) as response:
                content = response.read().decode()
                return json.loads(content) if response.headers.get_content_type() == "application/json" else content
        except urllib.error.HTTPError as error:
            raise ValueError(f"{method} {path}: {json.load(error)['error']}") from None

    def reset(self):
        """Deletes tables, faults, snapshots and recorded requests, and lets the clock run."""
        self.call("POST", "/reset")

    def inject(self, fault, **rule):
        """Injects a fault into the requests that the rule selects, such as `operations=["InsertEntity"], times=2`. Returns its id."""
        return self.call("POST", "/faults", {**rule, "fault": fault})["id"]

    def hits(self, fault_id):
        """The number of requests that a fault has hit."""
        return self.call("GET", f"/faults/{fault_id}")["hits"]

    def clear_faults(self):
        self.call("DELETE", "/faults")

    def at_each_request(self, fault):
        """For a loop: its body runs with the fault at its first request, then at its second one, until no request is left.

        Each run begins with the tables as they were. Check them with `dump`, which is no request to the tables.
        """
        before = self.snapshot()
        for number in itertools.count(1):
            self.restore(before)
            fault_id = self.inject(fault, nth=number)
            yield number
            if self.hits(fault_id) == 0:
                self.clear_faults()
                return

    def throttle(self, **rates):
        """Limits entities per second: `perPartition=2000, perAccount=20000` are the targets of the service."""
        self.call("PUT", "/throttle", rates)

    def requests(self, operation=None):
        """The recorded requests, or those of an operation."""
        requests = self.call("GET", "/requests")
        return [request for request in requests if operation in (None, request["operation"])]

    def lints(self):
        """What the recorded requests say about the design of tables."""
        return self.call("GET", "/lints")

    def set_clock(self, time):
        """Stops the clock at a time, such as "2030-01-31T12:00:00Z"."""
        self.call("POST", "/clock", {"kind": "set", "time": time})

    def advance_clock(self, seconds):
        self.call("POST", "/clock", {"kind": "advance", "seconds": seconds})

    def snapshot(self):
        """Keeps all tables as they are. Returns an id for `restore`."""
        return self.call("POST", "/snapshots")["id"]

    def restore(self, snapshot_id):
        self.call("POST", f"/snapshots/{snapshot_id}/restore")

    def load(self, lines):
        """Adds the tables and entities of lines of JSON."""
        self.call("POST", "/entities", lines)

    def dump(self):
        """All tables and entities as sorted text, without timestamps."""
        return self.call("GET", "/dump")


@pytest.fixture(scope="session")
def running_server():
    server = TableServer()
    yield server
    server.stop()


@pytest.fixture
def server(running_server):
    running_server.reset()
    yield running_server
    # pytest shows this if the test fails, or with -rP.
    for lint in running_server.lints():
        print(f"{lint['kind']}: {lint['text']}")
