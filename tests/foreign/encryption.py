"""Decrypts encrypted values by the documented form, with a well-known library and no code of tablesdk.

Usage: encryption.py [CONNECTION_STRING]

`vectors.json` has values with a fixed key and fixed nonces. With a connection string, the script also decrypts the entity that
`encryption.rs` has written.
"""

import hashlib
import hmac
import json
import pathlib
import struct
import sys
import uuid

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

SECRET = bytes(range(32))
VECTORS = pathlib.Path(__file__).parent / "../../tablesdk/src/patterns/encryption/vectors.json"
TYPES = {
    1: ("Edm.String", bytes.decode),
    2: ("Edm.Binary", bytes.hex),
    3: ("Edm.Boolean", lambda b: b == b"\x01"),
    4: ("Edm.DateTime", lambda b: struct.unpack(">q", b)[0]),
    5: ("Edm.Double", lambda b: struct.unpack(">d", b)[0]),
    6: ("Edm.Guid", lambda b: str(uuid.UUID(bytes=b))),
    7: ("Edm.Int32", lambda b: struct.unpack(">i", b)[0]),
    8: ("Edm.Int64", lambda b: struct.unpack(">q", b)[0]),
}


def lp(*texts):
    return b"".join(struct.pack(">I", len(t.encode())) + t.encode() for t in texts)


def derive(info):
    return HKDF(SHA256(), 32, None, info).derive(SECRET)


def key_id(name):
    return hashlib.sha256(b"tablesdk.key.1" + name.encode()).digest()[:16]


def decrypt(envelope, table, partition_key, row_key, name):
    """The type and the bytes of a value."""
    cell = lp(table.lower(), partition_key, row_key, name)
    header, nonce, encrypted = envelope[:18], envelope[18:30], envelope[30:]
    assert header == b"\x01\x01" + key_id("2024-01"), header.hex()
    return AESGCM(derive(b"tablesdk.enc.1" + cell)).decrypt(nonce, encrypted, header + cell)


def lookup(plain, table, name):
    key = derive(b"tablesdk.eq.1")
    return hmac.digest(key, lp(table.lower(), name) + plain, "sha256")


def value(plain):
    edm_type, convert = TYPES[plain[0]]
    return edm_type, convert(plain[1:])


def equal(found, expected):
    assert found == expected, f"{found!r} instead of {expected!r}"


def main():
    vectors = json.loads(VECTORS.read_text(encoding="utf-8"))
    equal(vectors["key_id"], key_id("2024-01").hex())
    cell = ("Company", "Sales", "empid_000223", "Email")
    for vector in vectors["values"]:
        plain = decrypt(bytes.fromhex(vector["envelope"]), *cell)
        equal(value(plain), (vector["type"], vector["value"]))
        equal(lookup(plain, "Company", "Email").hex(), vector["lookup"])
    for connection in sys.argv[1:]:
        from azure.data.tables import TableClient

        row = TableClient.from_connection_string(connection, table_name="Tests").get_entity("Sales", "1")
        plain = decrypt(row["Email"], "tests", "Sales", "1", "Email")
        equal(value(plain), ("Edm.String", "ada@contoso.com"))
        equal(lookup(plain, "tests", "Email"), row["Email__eq"])
        born = decrypt(row["Born"], "tests", "Sales", "1", "Born")
        equal(value(born), ("Edm.Int32", 1815))


if __name__ == "__main__":
    main()
