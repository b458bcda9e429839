"""Real servers, what asks them, and clients that they call: what the proofs have in common."""

import asyncio
import json
import random
import re
import signal
import subprocess
import sys
import tempfile
import time


async def serve(requested):
    """A client's server, which calls this with each body and answers 204; gives its port."""

    async def connected(reader, writer):
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
                requested(json.loads(await reader.readexactly(int(length.group(1)))))
                writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    # It serves for as long as it is referred to.
    serving.append(server)
    return server.sockets[0].getsockname()[1]


serving = []


def p99(times):
    return sorted(times)[int(len(times) * 0.99)]


class Server:
    """The program, killed and started again on the same stores."""

    def __init__(self, program, arguments):
        self.command, self.log = [program, "start", "--addr"], tempfile.NamedTemporaryFile("w+")
        self.arguments, self.port = arguments, None

    async def start(self):
        self.port = random.randrange(20_000, 30_000) if self.port is None else self.port
        command = [*self.command, f"127.0.0.1:{self.port}", *self.arguments]
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log)
        for _ in range(600):
            try:
                status, _ = await request(self.port, "GET", "/health/live")
                if status == 200:
                    return
            except OSError:
                pass
            if self.process.poll() is not None:
                sys.exit(f"the server ended: {open(self.log.name).read()[-2000:]}")
            await asyncio.sleep(0.05)
        sys.exit("the server does not answer")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    async def end(self, limit=60):
        """Asks it to end, as an operator does, and gives how long that took."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        while self.process.poll() is None:
            if time.monotonic() - began > limit:
                sys.exit(f"the server does not end: {open(self.log.name).read()[-2000:]}")
            await asyncio.sleep(0.05)
        return time.monotonic() - began


class Connection:
    """One connection, opened again when it breaks."""

    def __init__(self, server):
        self.server, self.streams = server, None

    async def call(self, method, path, body=None):
        if self.streams is None:
            self.streams = await asyncio.open_connection("127.0.0.1", self.server.port)
        try:
            return await exchange(*self.streams, method, path, body)
        except (OSError, asyncio.IncompleteReadError):
            self.streams = None
            raise


async def exchange(reader, writer, method, path, body):
    data = b"" if body is None else json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    writer.write(f"{head}content-length: {len(data)}\r\n\r\n".encode() + data)
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = re.search(r"(?i)\r\ncontent-length: *(\d+)", head)
    body = await reader.readexactly(int(length.group(1)) if length else 0)
    return int(head.split()[1]), body


async def request(port, method, path, body=None):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        return await exchange(reader, writer, method, path, body)
    finally:
        writer.close()
