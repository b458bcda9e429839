"""query.py PORT SQL: runs one statement as the user of the tests, and prints its rows, columns by tabs.

Enough of the wire protocol to see whether a server works where no driver and no shell is at hand.
Fails if the server does not answer, or answers with an error.
"""
import socket
import struct
import sys

VERSION = 196608  # of the protocol: 3.0


def message(stream):
    kind = stream.read(1)
    (length,) = struct.unpack("!i", stream.read(4))
    return kind, stream.read(length - 4)


def refuse(body):
    fields = [field.decode() for field in body.split(b"\0") if field]
    sys.exit("; ".join(field[1:] for field in fields if field[0] in "CM"))


def columns(body):
    (count,), at, shown = struct.unpack_from("!h", body), 2, []
    for _ in range(count):
        (length,) = struct.unpack_from("!i", body, at)
        at += 4
        shown.append("" if length < 0 else body[at : at + length].decode())
        at += max(length, 0)
    return "\t".join(shown)


def main(port, sql):
    who = b"user\0flare\0database\0postgres\0\0"
    with socket.create_connection(("127.0.0.1", int(port)), timeout=5) as server:
        server.sendall(struct.pack("!ii", len(who) + 8, VERSION) + who)
        stream, asked = server.makefile("rb"), False
        while True:
            kind, body = message(stream)
            if kind == b"E":
                refuse(body)
            elif kind == b"D":
                print(columns(body))
            elif kind == b"Z" and asked:
                return
            elif kind == b"Z":
                text = sql.encode() + b"\0"
                server.sendall(b"Q" + struct.pack("!i", len(text) + 4) + text)
                asked = True


if __name__ == "__main__":
    main(*sys.argv[1:])
