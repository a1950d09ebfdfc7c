"""Finds, removes, prolongs and writes entities that expire with the official Python client, by the documented form of buckets.

Usage: expiry.py CONNECTION_STRING

`expiry.rs` writes sessions before, and looks at what this program has made of them.
"""

import re
import sys
from datetime import datetime, timedelta, timezone
from urllib.parse import unquote

from azure.core import MatchConditions
from azure.data.tables import TableClient, UpdateMode

PREFIX = "~tablesdk.expiry."
NOW = datetime.now(timezone.utc)


def equal(found, expected):
    assert found == expected, f"{found!r} instead of {expected!r}"


def escaped(key, separator=""):
    forbidden = rf"[/\\#?=\x00-\x1F\x7F-\x9F{separator}]"
    return re.sub(forbidden, lambda found: "".join(f"={byte:02X}" for byte in found[0].encode()), key)


def second(instant):
    return instant.strftime("%Y-%m-%dT%H:%M:%SZ")


def entry(session):
    """The entry of a session in the bucket of its hour."""
    row_key = f"{PREFIX}{escaped(session['PartitionKey'], '_')}_{escaped(session['RowKey'])}"
    number = 0x811C9DC5
    for byte in row_key.encode():
        number = (number ^ byte) * 0x01000193 & 0xFFFFFFFF
    hour = second(session["Until"].replace(minute=0, second=0, microsecond=0))
    key = {"PartitionKey": f"{PREFIX}Session.{hour}.{number % 16:02}", "RowKey": row_key}
    return {**key, "TablesdkIndex": "Session.expiry", "TablesdkExpires": session["Until"]}


def under(version):
    return {"etag": version["etag"], "match_condition": MatchConditions.IfNotModified}


def expired(table):
    """The entries of sessions that have expired, and the sessions."""
    query = "PartitionKey ge @first and PartitionKey lt @after and TablesdkExpires le @now"
    buckets = {"first": f"{PREFIX}Session.", "after": f"{PREFIX}Session.{second(NOW)}/"}
    for found in list(table.query_entities(query, parameters={**buckets, "now": NOW})):
        keys = found["RowKey"].removeprefix(PREFIX).split("_", 1)
        yield found, table.get_entity(*(unquote(key.replace("%", "%25").replace("=", "%")) for key in keys))


def main():
    table = TableClient.from_connection_string(sys.argv[1], "Tests")
    found = {session["Device"]: (by, session) for by, session in expired(table)}
    equal(sorted(found), ["found", "moved", "prolonged", "removed"])
    for by, session in found.values():
        expected = entry(session)
        equal({name: by[name] for name in expected}, expected)

    # The entity under its ETag, and then its entry.
    by, session = found["removed"]
    table.delete_entity(session, **under(session.metadata))
    table.delete_entity(by, **under(by.metadata))
    # The new entry, the entity, and then the entry before.
    by, session = found["moved"]
    session["Until"] = NOW + timedelta(hours=3)
    table.create_entity(entry(session))
    table.update_entity(session, mode=UpdateMode.REPLACE, **under(session.metadata))
    table.delete_entity(by, **under(by.metadata))
    # As a program that does not know of buckets.
    _, session = found["prolonged"]
    session["Until"] = NOW + timedelta(hours=3)
    table.update_entity(session, mode=UpdateMode.REPLACE, **under(session.metadata))
    # Entries, and their sessions afterwards.
    for number, hours in [("8", -2), ("9", 2)]:
        key = {"PartitionKey": "a=b_c", "RowKey": f"session_00000{number}"}
        session = {**key, "Device": "new", "Until": NOW + timedelta(hours=hours)}
        written = table.create_entity(entry(session))
        table.create_entity(session)
        key = {name: entry(session)[name] for name in key}
        table.update_entity(key, mode=UpdateMode.MERGE, **under(written))


main()
