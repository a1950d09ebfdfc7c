"""Drives a table service with the official Python client, and checks what every call leaves behind.

Usage: client.py [--azurite] CONNECTION_STRING

Every check runs on a table of its own, so that one failure says nothing about the others. The
client hides some answers (it swallows the 404 of a delete); those are checked by reading back.
"""

import asyncio
import math
import re
import sys
import traceback
import uuid
from datetime import datetime, timedelta, timezone

from azure.core import MatchConditions
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import (
    ClientAuthenticationError,
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.data.tables import (
    AccountSasPermissions,
    EdmType,
    EntityProperty,
    ResourceTypes,
    TableAccessPolicy,
    TableAnalyticsLogging,
    TableClient,
    TableCorsRule,
    TableMetrics,
    TableRetentionPolicy,
    TableSasPermissions,
    TableServiceClient,
    TableTransactionError,
    UpdateMode,
    generate_account_sas,
    generate_table_sas,
)

from azure.data.tables.aio import TableServiceClient as AsyncTableServiceClient

# What `--azurite` leaves out. Everything else has to hold there, too.
AZURITE_LACKS = {
    "authentication-code": "a bad signature is answered in XML, and with AuthorizationFailure",
    "cors-without-headers": "a CORS rule without headers is refused",
    "exponent-literal": "a filter with a number such as 1e+300 finds nothing",
    "batch-limit": "the answer to 101 changes is one that clients cannot take apart",
    "name-codes": "an invalid table name is answered without an error code",
    "quoted-comma": "in a transaction, a quote and a comma in a key end it",
    "property-names": "a property's name may be anything",
    "padded-etags": "ETags are compared as texts",
    "partial-policies": "a policy without all fields is refused",
    "properties-limits": "properties beyond the limits are accepted",
    "secondary-of-python": "the signature of a request to the secondary is refused",
    "sas-address": "the addresses of a SAS are not looked at",
    "sas-key-range": "the range of keys of a table SAS is not looked at",
    "sas-srt": "a query of entities needs the resource type of tables",
    "sas-upsert": "an upsert needs one of two permissions",
    "select-null": "a selected property that the entity lacks is omitted instead of null",
    "trimmed-datetime": "a DateTime comes back as it was written, trailing zeros included",
}

KEYS = [
    "",
    " ",
    " two  words ",
    "O'Brien",
    "''",
    "a,b",
    "(a)",
    "x',RowKey='y",
    "100%",
    "%41",  # decoded twice it is another key
    "%2F",  # decoded twice it is not a key at all
    "a+b",
    "a&b",
    "a=b",
    "a;b:c@d!e*f~g$h",
    '"<[{|}]>"^`',
    "Zürich",
    "東京",
    "🦀",
    "Ａ",  # before the crab in code points, behind it in UTF-16 units, which is the service's order
]

CHECKS = []


def check(title):
    def register(function):
        CHECKS.append((title, function))
        return function

    return register


@check("create and delete tables")
def tables(run):
    name = run.new_name()
    service = run.service
    service.create_table(name)
    fails(409, "TableAlreadyExists", lambda: service.create_table(name), ResourceExistsError)
    fails(
        409, "TableAlreadyExists", lambda: service.create_table(name.upper()), ResourceExistsError
    )
    equal(run.tables_between(name, name), [name], "tables after the create")
    service.delete_table(name)
    equal(run.tables_between(name, name), [], "tables after the delete")
    service.delete_table(name)
    service.create_table(name)
    equal(
        list(service.get_table_client(name).list_entities()),
        [],
        "entities of a table created again",
    )


@check("list tables by filter and in pages")
def list_tables(run):
    prefix = run.new_name()
    names = [prefix + suffix for suffix in "abcde"]
    for name in names:
        run.service.create_table(name)
        run.names.append(name)
    equal(run.tables_between(names[1], names[3]), names[1:4], "range of names")
    query = f"TableName ge '{names[0]}' and TableName le '{names[-1]}'"
    pages = run.service.query_tables(query, results_per_page=2).by_page()
    equal([table.name for table in next(pages)], names[:2], "first page of tables")
    rest = run.service.query_tables(query, results_per_page=2).by_page(pages.continuation_token)
    equal(
        [[table.name for table in page] for page in rest],
        [names[2:4], names[4:]],
        "pages after the token",
    )


@check("invalid table names")
def invalid_names(run):
    for name in ["has-dash", "1digit", "ab", "a" * 64]:
        try:
            run.service.create_table(name)
        except ValueError as error:
            # What the client makes of the answer when its code and message blame the name.
            equal(error.__context__.status_code, 400, f"status for {name!r}")
        except HttpResponseError as error:
            equal(error.status_code, 400, f"status for {name!r}")
            if run.does("name-codes"):
                raise AssertionError(
                    f"the client did not understand the answer to {name!r}: {error}"
                ) from error
        else:
            raise AssertionError(f"the table {name!r} was created")


@check("every type, there and back")
def types(run):
    table = run.new_table()
    guid = uuid.UUID("0d391d16-97f1-4b9a-be68-4cc871f9ac01")
    sent = {
        "PartitionKey": "p",
        "RowKey": "r",
        "Text": "Grüße, 東京 🦀\n\t\"quoted\" \\ 'single' ",
        "TextEmpty": "",
        "Int": -(2**31),
        "IntZero": 0,
        "Long": EntityProperty(2**53 + 1, EdmType.INT64),
        "LongMin": EntityProperty(-(2**63), EdmType.INT64),
        "LongSmall": EntityProperty(5, EdmType.INT64),
        "Double": 0.1,
        "DoubleWhole": 5.0,
        "DoubleBig": 1.7976931348623157e308,
        "DoubleTiny": 5e-324,
        "DoubleNan": math.nan,
        "DoubleInf": math.inf,
        "DoubleNegInf": -math.inf,
        "Yes": True,
        "No": False,
        "Time": datetime(2024, 2, 29, 23, 59, 59, 123456, timezone.utc),
        "TimeEarly": datetime(1601, 1, 1, tzinfo=timezone.utc),
        "TimeZoned": datetime(2024, 7, 1, 1, 30, tzinfo=timezone(timedelta(hours=2))),
        "Guid": guid,
        "Binary": bytes(range(256)),
        "BinaryEmpty": b"",
        "größe": 1,
        "case": "lower",
        "Case": "upper",
        "Nothing": None,
    }
    created = table.create_entity(sent)
    got = table.get_entity("p", "r")

    expected = {name: value for name, value in sent.items() if value is not None}
    equal(sorted(got), sorted(expected), "property names")
    nan = got.pop("DoubleNan")
    assert isinstance(nan, float) and math.isnan(nan), f"NaN came back as {nan!r}"
    del expected["DoubleNan"]
    for name, value in expected.items():
        equal(got[name], value, name)
        kind = datetime if isinstance(value, datetime) else type(value)
        assert isinstance(got[name], kind), f"{name} came back as {type(got[name]).__name__}"
        assert isinstance(got[name], bool) == isinstance(
            value, bool
        ), f"{name} is not a {kind.__name__}"

    equal(got.metadata["etag"], created["etag"], "etag of the insert and of the get")
    age = datetime.now(timezone.utc) - got.metadata["timestamp"]
    assert abs(age) < timedelta(minutes=15), f"the timestamp is off by {age}"
    equal(
        [dict(entity) for entity in table.list_entities(select=["Long"])],
        [{"Long": sent["Long"]}],
        "listed",
    )


@check("the last digits of a DateTime")
def datetimes(run):
    table = run.new_table()
    times = {
        "2024-02-29T23:59:59.1234567Z": "2024-02-29T23:59:59.1234567Z",
        "9999-12-31T23:59:59.9999999Z": "9999-12-31T23:59:59.9999999Z",
    }
    if run.does("trimmed-datetime"):
        times["2024-02-29T23:59:59.1200000Z"] = "2024-02-29T23:59:59.12Z"
        times["2024-02-29T23:59:59.0000000Z"] = "2024-02-29T23:59:59Z"
    for row, (sent, expected) in enumerate(times.items()):
        table.create_entity(
            {"PartitionKey": "p", "RowKey": str(row), "At": EntityProperty(sent, EdmType.DATETIME)}
        )
        got = table.get_entity("p", str(row))
        equal(got["At"].tables_service_value, expected, "text of the DateTime")


@check("select")
def select(run):
    table = run.new_table()
    table.create_entity(
        {
            "PartitionKey": "p",
            "RowKey": "r",
            "A": 1,
            "B": EntityProperty(2, EdmType.INT64),
            "C": "c",
        }
    )
    equal(
        dict(table.get_entity("p", "r", select=["A", "B"])),
        {"A": 1, "B": (2, EdmType.INT64)},
        "point read",
    )
    keys = table.get_entity("p", "r", select=["PartitionKey", "RowKey", "C"])
    equal(dict(keys), {"PartitionKey": "p", "RowKey": "r", "C": "c"}, "point read with keys")
    equal(
        [dict(e) for e in table.query_entities("A eq 1", select=["C"])],
        [{"C": "c"}],
        "query by another property",
    )
    if run.does("select-null"):
        equal(
            dict(table.get_entity("p", "r", select=["A", "Missing"])),
            {"A": 1, "Missing": None},
            "missing property",
        )
        equal(
            [dict(e) for e in table.list_entities(select=["Missing"])],
            [{"Missing": None}],
            "missing, in a query",
        )


@check("awkward keys")
def keys(run):
    table = run.new_table()
    # Each key in both places, but never the same one in both: swapped keys would go unnoticed.
    pairs = list(zip(KEYS, KEYS[7:] + KEYS[:7]))
    for partition, row in pairs:
        table.create_entity(
            {"PartitionKey": partition, "RowKey": row, "N": 1, "Kept": partition + row}
        )
        fails(
            409,
            "EntityAlreadyExists",
            lambda p=partition, r=row: table.create_entity({"PartitionKey": p, "RowKey": r}),
            ResourceExistsError,
        )
    listed = [(e["PartitionKey"], e["RowKey"]) for e in table.list_entities()]
    equal(
        listed,
        sorted(pairs, key=lambda pair: [key.encode("utf-16-be") for key in pair]),
        "keys in order",
    )
    paged = [
        (e["PartitionKey"], e["RowKey"])
        for page in table.list_entities(results_per_page=1).by_page()
        for e in page
    ]
    equal(paged, listed, "keys, one a page")
    for partition, row in pairs:
        what = f"({partition!r}, {row!r})"
        table.update_entity(
            {"PartitionKey": partition, "RowKey": row, "N": 2}, mode=UpdateMode.MERGE
        )
        expected = {"PartitionKey": partition, "RowKey": row, "N": 2, "Kept": partition + row}
        equal(dict(table.get_entity(partition, row)), expected, what)
        # A placeholder is a word between two spaces, and its value is escaped by the client.
        found = table.query_entities(
            "PartitionKey eq @p and RowKey eq @r", parameters={"p": partition, "r": row}
        )
        equal([dict(entity) for entity in found], [expected], f"query for {what}")
        table.upsert_entity(
            {"PartitionKey": partition, "RowKey": row, "N": 3}, mode=UpdateMode.REPLACE
        )
        equal(
            dict(table.get_entity(partition, row)),
            {"PartitionKey": partition, "RowKey": row, "N": 3},
            what,
        )
        table.delete_entity(partition, row)
        fails(
            404,
            "ResourceNotFound",
            lambda p=partition, r=row: table.get_entity(p, r),
            ResourceNotFoundError,
        )
    equal(list(table.list_entities()), [], "entities after the deletes")


@check("queries on every type")
def queries(run):
    table = run.new_table()
    days = [datetime(2024, 1, day, 12, 30, 0, 123456, timezone.utc) for day in (1, 2, 3)]
    guids = [uuid.UUID(int=n << 96 | 7) for n in (1, 2, 3)]
    for n, row in enumerate("abc"):
        table.create_entity(
            {
                "PartitionKey": "it's" if row == "c" else "p",
                "RowKey": row,
                "Text": ["alpha", "it's ü", ""][n],
                "Int": [-5, 20, 300][n],
                "Long": EntityProperty([-(2**60), 2**53, 2**53 + 1][n], EdmType.INT64),
                "Double": [-1.5, 5.0, 1e300][n],
                "Flag": n == 1,
                "Time": days[n],
                "Guid": guids[n],
                "Binary": [b"", b"\x00\xff", b"\x01"][n],
            }
        )
    table.create_entity({"PartitionKey": "p", "RowKey": "z"})
    values = {
        "quote": "it's",
        "text": "it's ü",
        "int": -5,
        "low": 2**53,
        "high": 2**53 + 1,
        "five": 5.0,
        "huge": 1e300,
        "true": True,
        "false": False,
        "day": days[1],
        "guid": guids[1],
        "bytes": b"\x00\xff",
    }
    expected = {
        "PartitionKey eq @quote": "c",
        "PartitionKey eq 'p' and RowKey gt 'a'": "bz",
        "RowKey ge 'b' and RowKey lt 'z'": "bc",
        "Text eq @text": "b",
        "Text eq ''": "c",
        "Text gt 'alpha'": "b",
        "Text ge 'a' and Text lt 'b'": "a",
        "Int eq @int": "a",
        "Int lt 20": "a",
        "Int le 20": "ab",
        "Int ne 20": "ac",
        "Long eq @high": "c",
        "Long gt @low": "c",
        "Long ge @low": "bc",
        "Long lt 0L": "a",
        "Double eq @five": "b",
        "Double lt 0.0": "a",
        "Flag eq @true": "b",
        "Flag eq @false": "ac",
        "Time eq @day": "b",
        "Time gt @day": "c",
        "Time le @day": "ab",
        "Guid eq @guid": "b",
        "Guid ne @guid": "ac",
        "Binary eq @bytes": "b",
        "Binary eq X''": "a",
        "Binary gt @bytes": "c",
        "Int eq @int or Flag eq @true": "ab",
        "Int gt 0 and Double gt 10.0": "c",
        "Int eq 300 or Int eq 20 and Flag eq @true": "bc",
        "( Int eq 300 or Int eq 20 ) and Flag eq @true": "b",
        "(Int eq 300 or Int eq 20) and not (Flag eq true)": "c",
        "Int gt 0 and not ( Text eq @text )": "c",
        "Missing eq 1": "",
        "Missing ne 1": "",
        "not (Missing eq 1)": "abcz",
    }
    if run.does("exponent-literal"):
        expected["Double ge @huge"] = "c"
    wrong = []
    for query, rows in expected.items():
        found = "".join(sorted(e["RowKey"] for e in table.query_entities(query, parameters=values)))
        if found != rows:
            wrong.append(f"{query}: expected {rows!r}, got {found!r}")
    equal(wrong, [], "wrong answers")


@check("pages and continuation")
def pages(run):
    table = run.new_table()
    # Non-ASCII keys have to survive the continuation, which travels in headers.
    entities = [(f"ü{n // 13}", f"é{n:02}") for n in range(25)]
    for n, (partition, row) in enumerate(reversed(entities)):
        table.create_entity({"PartitionKey": partition, "RowKey": row, "Even": n % 2 == 0})

    def rows(page):
        return [(entity["PartitionKey"], entity["RowKey"]) for entity in page]

    listed = [rows(page) for page in table.list_entities(results_per_page=10).by_page()]
    equal(listed, [entities[:10], entities[10:20], entities[20:]], "pages of ten")
    listed = [rows(page) for page in table.list_entities(results_per_page=25).by_page()]
    equal([row for page in listed for row in page], entities, "as many as the page holds")

    first = table.list_entities(results_per_page=10).by_page()
    equal(rows(next(first)), entities[:10], "first page")
    token = first.continuation_token
    assert token, "no continuation after the first page"
    # What has been passed is not seen again, and what is still ahead may change.
    table.delete_entity(*entities[3])
    table.delete_entity(*entities[10])
    resumed = table.list_entities(results_per_page=10).by_page(continuation_token=token)
    equal(
        [rows(page) for page in resumed], [entities[11:21], entities[21:]], "pages after the token"
    )

    query = table.query_entities("Even eq true", results_per_page=5)
    found = [rows(page) for page in query.by_page()]
    assert all(len(page) <= 5 for page in found), f"a page of more than five: {found}"
    even = [entity for entity in entities[::2] if entity != entities[10]]
    equal([row for page in found for row in page], even, "filtered pages")


@check("replace")
def replace(run):
    table = run.new_table()
    entity = {"PartitionKey": "p", "RowKey": "r"}
    first = table.create_entity({**entity, "A": 1, "B": 1})["etag"]
    second = table.update_entity(
        {**entity, "A": 2},
        mode=UpdateMode.REPLACE,
        etag=first,
        match_condition=MatchConditions.IfNotModified,
    )["etag"]
    assert first != second, "the etag did not change"
    stale = {"etag": first, "match_condition": MatchConditions.IfNotModified}
    fails(
        412,
        "UpdateConditionNotSatisfied",
        lambda: table.update_entity({**entity, "A": 3}, mode=UpdateMode.REPLACE, **stale),
        ResourceModifiedError,
    )
    got = table.get_entity("p", "r")
    equal(dict(got), {**entity, "A": 2}, "entity after the stale replace")
    equal(got.metadata["etag"], second, "etag after the stale replace")
    third = table.update_entity({**entity, "C": 4}, mode=UpdateMode.REPLACE)["etag"]
    got = table.get_entity("p", "r")
    equal(dict(got), {**entity, "C": 4}, "entity after the unconditional replace")
    equal(got.metadata["etag"], third, "etag after the unconditional replace")
    fails(
        404,
        "ResourceNotFound",
        lambda: table.update_entity({**entity, "RowKey": "none"}, mode=UpdateMode.REPLACE),
        ResourceNotFoundError,
    )

    if run.does("padded-etags"):
        # Other programs make an ETag of the Timestamp, always with seven digits.
        etag = third
        while padded(etag) == etag:
            etag = table.update_entity({**entity, "A": 6})["etag"]
        unmodified = {"etag": padded(etag), "match_condition": MatchConditions.IfNotModified}
        table.update_entity({**entity, "A": 7}, mode=UpdateMode.REPLACE, **unmodified)
        equal(dict(table.get_entity("p", "r")), {**entity, "A": 7}, "entity after the replace")


def padded(etag):
    """The same ETag with seven digits behind the seconds."""
    head, tail = etag.split("Z'")
    seconds, _, fraction = head.partition(".")
    return f"{seconds}.{fraction.ljust(7, '0')}Z'{tail}"


@check("merge")
def merge(run):
    table = run.new_table()
    entity = {"PartitionKey": "p", "RowKey": "r"}
    first = table.create_entity({**entity, "A": 1, "B": EntityProperty(1, EdmType.INT64)})["etag"]
    second = table.update_entity(
        {**entity, "A": "text", "C": 2.0, "B": None},
        mode=UpdateMode.MERGE,
        etag=first,
        match_condition=MatchConditions.IfNotModified,
    )["etag"]
    assert first != second, "the etag did not change"
    merged = {**entity, "A": "text", "B": (1, EdmType.INT64), "C": 2.0}
    equal(dict(table.get_entity("p", "r")), merged, "entity after the merge")
    stale = {"etag": first, "match_condition": MatchConditions.IfNotModified}
    fails(
        412,
        "UpdateConditionNotSatisfied",
        lambda: table.update_entity({**entity, "A": 3}, mode=UpdateMode.MERGE, **stale),
        ResourceModifiedError,
    )
    equal(dict(table.get_entity("p", "r")), merged, "entity after the stale merge")
    table.update_entity(entity, mode=UpdateMode.MERGE)
    got = table.get_entity("p", "r")
    equal(dict(got), merged, "entity after a merge of nothing")
    assert got.metadata["etag"] != second, "a merge of nothing kept the etag"
    fails(
        404,
        "ResourceNotFound",
        lambda: table.update_entity({**entity, "RowKey": "none"}, mode=UpdateMode.MERGE),
        ResourceNotFoundError,
    )


@check("upsert")
def upsert(run):
    table = run.new_table()
    for mode in UpdateMode.MERGE, UpdateMode.REPLACE:
        entity = {"PartitionKey": "p", "RowKey": mode.value}
        first = table.upsert_entity({**entity, "A": 1, "B": 1}, mode=mode)["etag"]
        equal(
            dict(table.get_entity("p", mode.value)),
            {**entity, "A": 1, "B": 1},
            f"inserted by {mode.value}",
        )
        second = table.upsert_entity({**entity, "A": 2}, mode=mode)["etag"]
        assert first != second, "the etag did not change"
        kept = {"B": 1} if mode == UpdateMode.MERGE else {}
        got = table.get_entity("p", mode.value)
        equal(dict(got), {**entity, "A": 2, **kept}, f"updated by {mode.value}")
        equal(got.metadata["etag"], second, f"etag after the update by {mode.value}")


@check("delete")
def delete(run):
    table = run.new_table()
    entity = {"PartitionKey": "p", "RowKey": "r"}
    first = table.create_entity(entity)["etag"]
    second = table.update_entity({**entity, "A": 1})["etag"]
    unmodified = MatchConditions.IfNotModified
    fails(
        412,
        "UpdateConditionNotSatisfied",
        lambda: table.delete_entity("p", "r", etag=first, match_condition=unmodified),
        ResourceModifiedError,
    )
    equal(dict(table.get_entity("p", "r")), {**entity, "A": 1}, "entity after the stale delete")
    table.delete_entity("p", "r", etag=second, match_condition=unmodified)
    fails(404, "ResourceNotFound", lambda: table.get_entity("p", "r"), ResourceNotFoundError)
    table.delete_entity("p", "r")
    table.create_entity({**entity, "B": 2})
    equal(dict(table.get_entity("p", "r")), {**entity, "B": 2}, "entity inserted again")
    table.delete_entity(entity)
    equal(list(table.list_entities()), [], "entities after the delete")


@check("transactions of every kind of change")
def transactions(run):
    table = run.new_table()
    replace, merge = {"mode": UpdateMode.REPLACE}, {"mode": UpdateMode.MERGE}

    def entity(row, **properties):
        return {"PartitionKey": "it's p, ü", "RowKey": row, **properties}

    rows = ["delete", "merge", "put", "upsert merge", "upsert put"]
    created = table.submit_transaction([("create", entity(row, A=1, B=1)) for row in rows])
    etags = {row: answer["etag"] for row, answer in zip(rows, created)}
    for row in rows:
        equal(table.get_entity("it's p, ü", row).metadata["etag"], etags[row], f"etag of {row}")

    unmodified = MatchConditions.IfNotModified
    changes = [
        ("create", entity("new", A="}{\r\n--changeset_ %7D")),
        ("delete", entity("delete"), {"etag": etags["delete"], "match_condition": unmodified}),
        ("update", entity("merge", A=2), merge),
        (
            "update",
            entity("put", A=2),
            {"etag": etags["put"], "match_condition": unmodified, **replace},
        ),
        ("upsert", entity("upsert merge", A=2), merge),
        ("upsert", entity("upsert put", A=2), replace),
        ("upsert", entity("new merge", A=2), merge),
        ("upsert", entity("new put", A=2), replace),
    ]
    answers = table.submit_transaction(changes)
    equal(len(answers), len(changes), "answers")
    expected = {
        "new": entity("new", A="}{\r\n--changeset_ %7D"),
        "merge": entity("merge", A=2, B=1),
        "put": entity("put", A=2),
        "upsert merge": entity("upsert merge", A=2, B=1),
        "upsert put": entity("upsert put", A=2),
        "new merge": entity("new merge", A=2),
        "new put": entity("new put", A=2),
    }
    found = {found["RowKey"]: found for found in table.list_entities()}
    equal({row: dict(entity) for row, entity in found.items()}, expected, "entities")
    for (_, sent, *_), answer in zip(changes, answers):
        if sent["RowKey"] != "delete":
            etag = found[sent["RowKey"]].metadata["etag"]
            equal(answer["etag"], etag, f"etag of {sent['RowKey']}")

    hundred = [entity(f"{n:03}") for n in range(100)]
    answers = table.submit_transaction([("create", entity) for entity in hundred])
    equal(len(answers), 100, "answers to a hundred changes")
    deleted = table.submit_transaction([("delete", entity) for entity in hundred])
    equal(len(deleted), 100, "answers to a hundred deletes")
    equal(len(list(table.list_entities())), len(expected), "entities after the deletes")


@check("transactions on awkward keys")
def transactions_on_keys(run):
    table = run.new_table()
    keys = run.keys_in_transactions()
    for partition in keys:
        entities = [{"PartitionKey": partition, "RowKey": row, "A": row} for row in keys]
        created = table.submit_transaction([("create", entity) for entity in entities])
        by_row = {row: answer["etag"] for row, answer in zip(keys, created)}
        changes = [("update", {**entity, "B": 2}, {"mode": UpdateMode.MERGE}) for entity in entities]
        table.submit_transaction(changes)
        found = list(table.query_entities("PartitionKey eq @p", parameters={"p": partition}))
        expected = sorted(entities, key=lambda entity: entity["RowKey"].encode("utf-16-be"))
        equal(
            [dict(entity) for entity in found],
            [{**entity, "B": 2} for entity in expected],
            f"entities of {partition!r}",
        )
        assert all(by_row[e["RowKey"]] != e.metadata["etag"] for e in found), "unchanged ETags"
        table.submit_transaction([("delete", entity) for entity in entities])
    equal(list(table.list_entities()), [], "entities after the deletes")


@check("the asynchronous client")
def asynchronous(run):
    # It has an HTTP stack of its own, which spells URLs in its own way, and signs that.
    keys = run.keys_in_transactions()
    pairs = list(zip(keys, keys[7:] + keys[:7]))

    async def all_verbs():
        service = AsyncTableServiceClient.from_connection_string(
            run.connection_string, retry_total=0
        )
        async with service:
            table = await service.create_table_if_not_exists(run.new_name())
            await service.create_table_if_not_exists(table.table_name)
            async with table:
                for partition, row in pairs:
                    entity = {"PartitionKey": partition, "RowKey": row}
                    await table.create_entity({**entity, "A": 1})
                    await table.update_entity({**entity, "B": 2}, mode=UpdateMode.MERGE)
                    await table.upsert_entity({**entity, "C": 3}, mode=UpdateMode.MERGE)
                    expected = {**entity, "A": 1, "B": 2, "C": 3}
                    equal(dict(await table.get_entity(partition, row)), expected, entity)
                    found = table.query_entities(
                        "PartitionKey eq @p and RowKey eq @r",
                        parameters={"p": partition, "r": row},
                    )
                    equal([dict(entity) async for entity in found], [expected], entity)
                pages = table.list_entities(results_per_page=3)
                equal(len([entity async for entity in pages]), len(pairs), "entities in pages")
                for partition, row in pairs:
                    await table.submit_transaction(
                        [("delete", {"PartitionKey": partition, "RowKey": row})]
                    )
                equal([entity async for entity in table.list_entities()], [], "entities left")

    asyncio.run(all_verbs())


@check("transactions that fail as a whole")
def failed_transactions(run):
    table = run.new_table()

    def entity(row, **properties):
        return {"PartitionKey": "p", "RowKey": row, **properties}

    stale = table.create_entity(entity("a", A=1))["etag"]
    table.update_entity(entity("a", A=2))
    table.create_entity(entity("b", A=1))

    def entities():
        return [(dict(entity), entity.metadata["etag"]) for entity in table.list_entities()]

    before = entities()
    unmodified = {"etag": stale, "match_condition": MatchConditions.IfNotModified}
    good = ("upsert", entity("new"))
    many = [("upsert", entity(f"{n:03}")) for n in range(101)]
    cases = [
        ("a conflict", 409, "EntityAlreadyExists", 2, [good, ("delete", entity("b")), ("create", entity("a"))]),
        ("a missing entity", 404, "ResourceNotFound", 1, [good, ("update", entity("none"))]),
        (
            "a stale update",
            412,
            "UpdateConditionNotSatisfied",
            1,
            [good, ("update", entity("a", A=3), unmodified), ("create", entity("b"))],
        ),
        ("a stale delete", 412, "UpdateConditionNotSatisfied", 1, [good, ("delete", entity("a"), unmodified)]),
        ("an entity twice", 400, "InvalidDuplicateRow", 2, [good, ("delete", entity("b")), ("upsert", entity("b"))]),
    ]
    if run.does("property-names"):
        cases += [("a bad property", 400, "PropertyNameInvalid", 1, [good, ("create", entity("x", **{"a-b": 1}))])]
    if run.does("batch-limit"):
        cases.append(("101 changes", 400, "InvalidInput", 99, many))
    for what, status, code, index, changes in cases:
        try:
            answers = table.submit_transaction(changes)
        except TableTransactionError as error:
            equal((error.status_code, error.error_code, error.index), (status, code, index), what)
        else:
            raise AssertionError(f"{what}: {answers}")
        equal(entities(), before, f"entities after {what}")

    nowhere = run.service.get_table_client(run.new_name())
    try:
        answers = nowhere.submit_transaction([good])
    except TableTransactionError as error:
        equal((error.status_code, error.error_code, error.index), (404, "TableNotFound", 0), "error")
    else:
        raise AssertionError(f"in a missing table: {answers}")


@check("what is not there, and what is there already")
def missing(run):
    entity = {"PartitionKey": "p", "RowKey": "r", "A": 1}
    nowhere = run.service.get_table_client(run.new_name())
    for call in (
        lambda: nowhere.get_entity("p", "r"),
        lambda: nowhere.create_entity(entity),
        lambda: nowhere.update_entity(entity),
        lambda: nowhere.upsert_entity(entity),
        lambda: list(nowhere.list_entities()),
    ):
        fails(404, "TableNotFound", call, ResourceNotFoundError)

    table = run.new_table()
    fails(404, "ResourceNotFound", lambda: table.get_entity("p", "r"), ResourceNotFoundError)
    created = table.create_entity(entity)
    fails(
        409,
        "EntityAlreadyExists",
        lambda: table.create_entity({**entity, "A": 2}),
        ResourceExistsError,
    )
    got = table.get_entity("p", "r")
    equal(dict(got), entity, "entity after the conflict")
    equal(got.metadata["etag"], created["etag"], "etag after the conflict")


@check("a wrong account key")
def wrong_key(run):
    parts = [
        part
        for part in run.connection_string.split(";")
        if part and not part.lower().startswith("accountkey=")
    ]
    stranger = TableServiceClient.from_connection_string(
        ";".join([*parts, "AccountKey=" + "A" * 86 + "=="])
    )
    name = run.new_name()
    code, error = None, HttpResponseError
    if run.does("authentication-code"):
        code, error = "AuthenticationFailed", ClientAuthenticationError
    fails(403, code, lambda: stranger.create_table(name), error)
    fails(403, code, lambda: list(stranger.list_tables()), error)
    equal(run.tables_between(name, name), [], "tables of the stranger")


def hour():
    return datetime.now(timezone.utc).replace(microsecond=0) + timedelta(hours=1)


@check("a table SAS")
def table_sas(run):
    table = run.new_table()
    other = run.new_table()
    keys = {"PartitionKey": "p", "RowKey": "r"}
    table.create_entity({**keys, "A": 1})

    everything = run.with_table_sas(
        table,
        permission=TableSasPermissions(read=True, add=True, update=True, delete=True),
        expiry=hour(),
    )
    everything.create_entity({**keys, "RowKey": "s"})
    everything.upsert_entity({**keys, "RowKey": "t"})
    everything.update_entity({**keys, "A": 2})
    equal([e["RowKey"] for e in everything.list_entities()], ["r", "s", "t"], "rows")
    everything.delete_entity("p", "s")
    equal(dict(everything.get_entity("p", "r")), {**keys, "A": 2}, "entity")

    read = run.with_table_sas(table, permission="r", expiry=hour())
    equal([e["RowKey"] for e in read.list_entities()], ["r", "t"], "rows with read alone")
    lacking = "AuthorizationPermissionMismatch"
    refused(run, 403, lacking, lambda: read.create_entity({**keys, "RowKey": "u"}))
    refused(run, 403, lacking, lambda: read.update_entity({**keys, "A": 3}))
    refused(run, 403, lacking, lambda: read.delete_entity(keys))
    if run.does("sas-upsert"):
        add = run.with_table_sas(table, permission="a", expiry=hour())
        refused(run, 403, lacking, lambda: add.upsert_entity({**keys, "A": 3}))
        update = run.with_table_sas(table, permission="u", expiry=hour())
        refused(run, 403, lacking, lambda: update.upsert_entity({**keys, "A": 3}))
    equal(table.get_entity("p", "r")["A"], 2, "after what was refused")

    token = run.table_sas(table, permission="raud", expiry=hour())
    stranger = run.with_sas(other, token)
    refused(run, 403, "AuthorizationFailure", lambda: list(stranger.list_entities()))
    forged = run.with_sas(table, token.replace("sp=raud", "sp=ra"))
    failed = "AuthenticationFailed"
    refused(run, 403, failed, lambda: list(forged.list_entities()))
    late = run.with_table_sas(table, permission="r", expiry=hour() - timedelta(hours=2))
    refused(run, 403, failed, lambda: list(late.list_entities()))
    early = run.with_table_sas(
        table, permission="r", start=hour(), expiry=hour() + timedelta(hours=1)
    )
    refused(run, 403, failed, lambda: list(early.list_entities()))
    elsewhere = run.with_table_sas(
        table, permission="r", expiry=hour(), ip_address_or_range="192.0.2.1-192.0.2.9"
    )
    if run.does("sas-address"):
        refused(
            run, 403, "AuthorizationSourceIPMismatch", lambda: list(elsewhere.list_entities())
        )
    here = run.with_table_sas(
        table, permission="r", expiry=hour(), ip_address_or_range="127.0.0.0-127.0.0.255"
    )
    equal(len(list(here.list_entities())), 2, "from an address of the range")


@check("a table SAS with a range of keys")
def key_range(run):
    if not run.does("sas-key-range"):
        return
    table = run.new_table()
    for partition in "ABC":
        for row in "123":
            table.create_entity({"PartitionKey": partition, "RowKey": row})
    client = run.with_table_sas(
        table,
        permission="raud",
        expiry=hour(),
        start_pk="A",
        start_rk="2",
        end_pk="C",
        end_rk="1",
    )
    found = [e["PartitionKey"] + e["RowKey"] for e in client.list_entities()]
    equal(found, ["A2", "A3", "B1", "B2", "B3", "C1"], "entities in range")
    equal(client.get_entity("C", "1")["RowKey"], "1", "the last one")
    refused(run, 404, "ResourceNotFound", lambda: client.get_entity("C", "2"))
    outside = {"PartitionKey": "A", "RowKey": "1", "A": 1}
    for call in (
        lambda: client.create_entity({**outside, "RowKey": "0"}),
        lambda: client.update_entity(outside),
        lambda: client.upsert_entity(outside),
        lambda: client.delete_entity(outside),
    ):
        refused(run, 403, "AuthorizationFailure", call)
    client.delete_entity("B", "1")
    found = [e["PartitionKey"] + e["RowKey"] for e in table.list_entities()]
    equal(found, ["A1", "A2", "A3", "B2", "B3", "C1", "C2", "C3"], "what is left")


@check("stored access policies")
def policies(run):
    table = run.new_table()
    table.create_entity({"PartitionKey": "p", "RowKey": "r"})
    equal(table.get_table_access_policy(), {}, "policies of a new table")
    expiry = hour()
    start = expiry - timedelta(hours=2)
    given = {"read": TableAccessPolicy(start=start, expiry=expiry, permission="r")}
    if run.does("partial-policies"):
        given["partial"] = TableAccessPolicy(permission="r")
        given["empty"] = None
    table.set_table_access_policy(given)
    got = table.get_table_access_policy()
    equal(list(got), list(given), "ids")
    equal((got["read"].permission, got["read"].expiry), ("r", expiry), "policy")
    if run.does("partial-policies"):
        equal((got["partial"].permission, got["partial"].expiry), ("r", None), "partial policy")
        equal(got["empty"], None, "empty policy")

    client = run.with_table_sas(table, policy_id="read")
    equal(len(list(client.list_entities())), 1, "entities by a policy")
    refused(
        run,
        403,
        "AuthorizationPermissionMismatch",
        lambda: client.create_entity({"PartitionKey": "p", "RowKey": "s"}),
    )
    failed = "AuthenticationFailed"
    if run.does("partial-policies"):
        completed = run.with_table_sas(table, policy_id="partial", expiry=expiry)
        equal(len(list(completed.list_entities())), 1, "entities by a policy and an expiry")
        both = run.with_table_sas(table, policy_id="read", permission="r")
        refused(run, 403, failed, lambda: list(both.list_entities()))
    unknown = run.with_table_sas(table, policy_id="nobody")
    refused(run, 403, failed, lambda: list(unknown.list_entities()))

    six = {str(n): TableAccessPolicy(permission="r") for n in range(6)}
    try:
        table.set_table_access_policy(six)
    except (HttpResponseError, ValueError):
        pass
    else:
        raise AssertionError("six policies were accepted")
    equal(list(table.get_table_access_policy()), list(got), "ids after the refusal")
    table.set_table_access_policy({})
    equal(table.get_table_access_policy(), {}, "policies after they were cleared")
    refused(run, 403, failed, lambda: list(client.list_entities()))
    nowhere = run.service.get_table_client(run.new_name())
    refused(run, 404, "TableNotFound", nowhere.get_table_access_policy)


@check("an account SAS")
def account_sas(run):
    if not run.does("sas-srt"):
        return
    table = run.new_table()
    table.create_entity({"PartitionKey": "p", "RowKey": "r"})
    name = run.new_name()
    everything = ResourceTypes(service=True, object=True, container=True)
    service = run.with_account_sas(
        everything,
        AccountSasPermissions(
            read=True, write=True, delete=True, list=True, add=True, create=True, update=True
        ),
    )
    service.create_table(name)
    other = service.get_table_client(name)
    other.upsert_entity({"PartitionKey": "p", "RowKey": "r", "A": 1})
    equal(dict(other.get_entity("p", "r"))["A"], 1, "entity")
    listed = [found.name for found in service.query_tables(f"TableName eq '{name}'")]
    equal(listed, [name], "tables")
    assert "hour_metrics" in service.get_service_properties()
    service.delete_table(name)

    objects = run.with_account_sas(ResourceTypes(object=True), AccountSasPermissions(read=True))
    entities = objects.get_table_client(table.table_name)
    equal(len(list(entities.list_entities())), 1, "entities")
    lacking = "AuthorizationPermissionMismatch"
    entity = {"PartitionKey": "p", "RowKey": "s"}
    refused(run, 403, lacking, lambda: entities.create_entity(entity))
    lacking = "AuthorizationResourceTypeMismatch"
    refused(run, 403, lacking, lambda: list(objects.list_tables()))
    refused(run, 403, lacking, lambda: objects.create_table(name))
    refused(run, 403, lacking, objects.get_service_properties)
    refused(run, 403, "AuthorizationFailure", entities.get_table_access_policy)
    equal(run.tables_between(name, name), [], "tables after what was refused")


@check("service properties")
def service_properties(run):
    service = run.service
    before = service.get_service_properties()
    rules = [TableCorsRule(["www.xyz.com"], ["GET"])] if run.does("cors-without-headers") else []
    rules += [
        TableCorsRule(
            ["www.xyz.com", "www.ab.com"],
            ["GET", "PUT"],
            max_age_in_seconds=500,
            exposed_headers=["x-ms-meta-data*"],
            allowed_headers=["x-ms-meta-xyz", "x-ms-meta-foo"],
        ),
    ]
    week = TableRetentionPolicy(enabled=True, days=7)
    try:
        service.set_service_properties(
            analytics_logging=TableAnalyticsLogging(read=True, retention_policy=week),
            minute_metrics=TableMetrics(enabled=True, include_apis=True, retention_policy=week),
            cors=rules,
        )
        got = service.get_service_properties()
        logging, minute = got["analytics_logging"], got["minute_metrics"]
        equal((logging.read, logging.write), (True, False), "logging")
        equal(logging.retention_policy.days, 7, "days of the logs")
        equal((minute.enabled, minute.include_apis), (True, True), "minute metrics")
        cors = [(r.allowed_origins, r.allowed_methods, r.max_age_in_seconds) for r in got["cors"]]
        expected = [(r.allowed_origins, r.allowed_methods, r.max_age_in_seconds) for r in rules]
        equal(cors, expected, "CORS rules")
        equal(got["cors"][-1].allowed_headers, rules[-1].allowed_headers, "headers")
        equal(got["hour_metrics"].enabled, before["hour_metrics"].enabled, "hour metrics")
        if run.does("properties-limits"):
            year = TableRetentionPolicy(enabled=True, days=366)
            logging = TableAnalyticsLogging(retention_policy=year)
            invalid = "InvalidXmlDocument"
            refused(
                run,
                400,
                invalid,
                lambda: service.set_service_properties(analytics_logging=logging),
            )
            refused(
                run, 400, invalid, lambda: service.set_service_properties(cors=rules[:1] * 6)
            )
            got = service.get_service_properties()
            equal(got["analytics_logging"].retention_policy.days, 7, "days after the refusal")
    finally:
        service.set_service_properties(
            analytics_logging=TableAnalyticsLogging(), minute_metrics=TableMetrics(), cors=[]
        )
    equal(service.get_service_properties()["cors"], [], "CORS rules after they were cleared")


@check("statistics, from the secondary")
def stats(run):
    if not run.does("secondary-of-python"):
        return
    got = run.service.get_service_stats()["geo_replication"]
    equal(got["status"], "live", "status")
    age = datetime.now(timezone.utc) - got["last_sync_time"]
    assert abs(age) < timedelta(minutes=15), f"the last synchronisation is off by {age}"


class Run:
    def __init__(self, connection_string, azurite):
        self.connection_string = connection_string
        self.azurite = azurite
        # A retry would hide an answer that ought not to have been given.
        self.service = TableServiceClient.from_connection_string(connection_string, retry_total=0)
        parts = dict(part.split("=", 1) for part in connection_string.split(";") if part)
        self.credential = AzureNamedKeyCredential(parts["AccountName"], parts["AccountKey"])
        self.prefix = f"py{uuid.uuid4().hex}"
        self.names = []

    def does(self, what):
        """Whether the service has to pass the checks named `what`."""
        assert what in AZURITE_LACKS, what
        return not self.azurite

    def keys_in_transactions(self):
        return [key for key in KEYS if "'," not in key or self.does("quoted-comma")]

    def new_name(self):
        name = f"{self.prefix}{len(self.names):03}"
        self.names.append(name)
        return name

    def new_table(self):
        return self.service.create_table(self.new_name())

    def table_sas(self, table, **options):
        return generate_table_sas(self.credential, table.table_name, **options)

    def with_sas(self, table, token):
        """A client of the same table that has a SAS and no key."""
        return TableClient(
            self.service.url,
            table.table_name,
            credential=AzureSasCredential(token),
            retry_total=0,
        )

    def with_table_sas(self, table, **options):
        return self.with_sas(table, self.table_sas(table, **options))

    def with_account_sas(self, types, permissions):
        token = generate_account_sas(self.credential, types, permissions, hour())
        return TableServiceClient(
            self.service.url, credential=AzureSasCredential(token), retry_total=0
        )

    def tables_between(self, first, last):
        found = self.service.query_tables(
            "TableName ge @a and TableName le @b", parameters={"a": first, "b": last}
        )
        return [table.name for table in found]

    def delete_tables(self):
        for name in self.names:
            self.service.delete_table(name)
        equal(self.tables_between(self.prefix, self.prefix + "z"), [], "tables left over")


def equal(actual, expected, what):
    assert actual == expected, f"{what}: expected {expected!r}, got {actual!r}"


def fails(status, code, call, error_type):
    try:
        result = call()
    except HttpResponseError as error:
        equal(error.status_code, status, "status")
        if code is not None:
            equal(error.response.json()["odata.error"]["code"], code, "error code")
        assert isinstance(
            error, error_type
        ), f"expected {error_type.__name__}, got {type(error).__name__}"
    else:
        raise AssertionError(f"expected {status} {code}, got {result!r}")


def refused(run, status, code, call):
    """As `fails`, whatever the body, and without the code on Azurite."""
    try:
        result = call()
    except HttpResponseError as error:
        equal(error.status_code, status, f"status of {error}")
        if not run.azurite:
            found = re.search(r'"code":"(\w+)"|<m:code>(\w+)<', error.response.text())
            equal(found and (found[1] or found[2]), code, "error code")
    else:
        raise AssertionError(f"expected {status} {code}, got {result!r}")


def main(arguments):
    azurite = "--azurite" in arguments
    connection_strings = [argument for argument in arguments if argument != "--azurite"]
    if len(connection_strings) != 1:
        sys.exit("usage: client.py [--azurite] CONNECTION_STRING")
    run = Run(connection_strings[0], azurite)
    if azurite:
        for name, reason in AZURITE_LACKS.items():
            print(f"left out: {name}: {reason}")
    failed = 0
    checks = [*CHECKS, ("delete the tables", Run.delete_tables)]
    for title, function in checks:
        try:
            function(run)
            print(f"ok: {title}", flush=True)
        except Exception:
            failed += 1
            print(f"FAILED: {title}", flush=True)
            traceback.print_exc()
    print(f"Python client: {len(checks) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
