"""command.py PORT DATABASE COMMAND: runs one MongoDB command, given as JSON, and prints the reply as JSON.

Enough of the wire protocol to see whether a server works where no driver and no shell is at hand.
Fails if the server does not answer, or answers with an error.
"""
import json
import socket
import struct
import sys

OP_MSG = 2013


def encode(document):
    elements = b"".join(element(str(key), value) for key, value in document.items())
    return struct.pack("<i", len(elements) + 5) + elements + b"\0"


def element(key, value):
    name = key.encode() + b"\0"
    if isinstance(value, bool):
        return b"\x08" + name + bytes([value])
    if isinstance(value, int):
        return b"\x12" + name + struct.pack("<q", value)
    if isinstance(value, str):
        text = value.encode() + b"\0"
        return b"\x02" + name + struct.pack("<i", len(text)) + text
    if isinstance(value, list):
        return b"\x04" + name + encode(dict(enumerate(value)))
    return b"\x03" + name + encode(value)


# The types a reply to a simple command is made of; the others are shown as hexadecimal digits.
NUMBERS = {0x01: "<d", 0x10: "<i", 0x12: "<q", 0x08: "<?", 0x09: "<q"}
SIZES = {0x05: lambda b: struct.unpack_from("<i", b)[0] + 5, 0x07: lambda b: 12, 0x0A: lambda b: 0, 0x11: lambda b: 8, 0x13: lambda b: 16}


def decode(data):
    document, at = {}, 4
    while data[at]:
        kind, end = data[at], data.index(b"\0", at + 1)
        key, at = data[at + 1 : end].decode(), end + 1
        if kind in NUMBERS:
            (value,) = struct.unpack_from(NUMBERS[kind], data, at)
            size = struct.calcsize(NUMBERS[kind])
        elif kind == 0x02:
            size = 4 + struct.unpack_from("<i", data, at)[0]
            value = data[at + 4 : at + size - 1].decode()
        elif kind in (0x03, 0x04):
            size = struct.unpack_from("<i", data, at)[0]
            value = decode(data[at : at + size])
            value = list(value.values()) if kind == 0x04 else value
        else:
            size = SIZES[kind](data[at:])
            value = data[at : at + size].hex()
        document[key], at = value, at + size
    return document


def run(port, database, command):
    body = b"\0\0\0\0\0" + encode({**command, "$db": database})
    with socket.create_connection(("127.0.0.1", port), timeout=5) as server:
        server.sendall(struct.pack("<iiii", len(body) + 16, 1, 0, OP_MSG) + body)
        stream = server.makefile("rb")
        length = struct.unpack("<i", stream.read(4))[0]
        return decode(stream.read(length - 4)[17:])


def main(port, database, command):
    reply = run(int(port), database, json.loads(command))
    print(json.dumps(reply))
    return reply.get("ok") != 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
