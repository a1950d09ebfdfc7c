"""Writes, reads and copies entities with the official Python client, as it is told.

Usage: child.py CONNECTION_STRING

A line of JSON on standard input is one request, a line on standard output its answer. A property is
[name, EDM type, text]: a double is the 16 digits of its bits, bytes are in Base64, a null has neither
type nor text. In the mode "plain" the values are those that a Python program has of itself; in the mode
"typed" each is an EntityProperty, and dates are texts.
"""

import base64
import json
import math
import struct
import sys
import uuid
from datetime import datetime, timezone

from azure.core.exceptions import HttpResponseError
from azure.data.tables import EdmType, EntityProperty, TableServiceClient


def double_of(text):
    return struct.unpack(">d", bytes.fromhex(text))[0]


def text_of(double):
    return struct.pack(">d", math.nan if math.isnan(double) else double).hex()


def datetime_of(text):
    """To the microsecond: a datetime holds no more."""
    seconds, _, fraction = text.rstrip("Z").partition(".")
    at = datetime.strptime(seconds, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=timezone.utc)
    return at.replace(microsecond=int(fraction[:6].ljust(6, "0")))


def plain(edm_type, text):
    if edm_type is None:
        return None
    return {
        "Edm.Binary": base64.b64decode,
        "Edm.Boolean": lambda text: text == "true",
        "Edm.DateTime": datetime_of,
        "Edm.Double": double_of,
        "Edm.Guid": uuid.UUID,
        "Edm.Int32": int,
        # Without its type, an integer is an Int32.
        "Edm.Int64": lambda text: EntityProperty(int(text), EdmType.INT64),
        "Edm.String": str,
    }[edm_type](text)


def typed(edm_type, text):
    value = plain(edm_type, text)
    if edm_type is None or isinstance(value, EntityProperty):
        return value
    return EntityProperty(text if edm_type == "Edm.DateTime" else value, EdmType(edm_type))


def told(name, value, mode):
    if isinstance(value, EntityProperty):
        return [name, value.edm_type.value, str(value.value)]
    if isinstance(value, bool):
        return [name, "Edm.Boolean", "true" if value else "false"]
    if isinstance(value, int):
        return [name, "Edm.Int32", str(value)]
    if isinstance(value, float):
        return [name, "Edm.Double", text_of(value)]
    if isinstance(value, str):
        return [name, "Edm.String", value]
    if isinstance(value, bytes):
        return [name, "Edm.Binary", base64.b64encode(value).decode()]
    if isinstance(value, uuid.UUID):
        return [name, "Edm.Guid", str(value)]
    if isinstance(value, datetime):
        if mode == "typed":
            return [name, "Edm.DateTime", value.tables_service_value]
        return [name, "Edm.DateTime", value.strftime("%Y-%m-%dT%H:%M:%S.%fZ")]
    raise TypeError(f"{name} came as {type(value).__name__}")


def answer(table, request):
    mode = request["mode"]
    if request["do"] == "write":
        convert = typed if mode == "typed" else plain
        entity = {"PartitionKey": "p", "RowKey": request["row"]}
        for name, edm_type, text in request["properties"]:
            entity[name] = convert(edm_type, text)
        table.create_entity(entity)
        return {}
    entity = table.get_entity("p", request["row"])
    if request["do"] == "read":
        names = [name for name in entity if name not in ("PartitionKey", "RowKey")]
        return {"properties": [told(name, entity[name], mode) for name in names]}
    if mode == "plain":
        # What the client gives is a datetime that remembers its text: a program that computes has a plain one.
        for name, value in entity.items():
            if isinstance(value, datetime):
                entity[name] = datetime.combine(value.date(), value.timetz())
    entity["RowKey"] = request["to"]
    table.create_entity(entity)
    return {}


def main():
    service = TableServiceClient.from_connection_string(sys.argv[1], retry_total=0)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            reply = answer(service.get_table_client(request["table"]), request)
        except HttpResponseError as error:
            code = getattr(error, "error_code", None)
            reply = {"refused": [error.status_code, getattr(code, "value", code)]}
        except Exception as error:  # the client's own refusals are of any type
            reply = {"failed": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), flush=True)


main()
