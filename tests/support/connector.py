"""A process that connects to sockets again and again, as callers do."""

import ast
import contextlib
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# The program runs until its stdin is closed. It then prints how many connections it
# made, and the errors of those that failed.
PROGRAM = """
import select, socket, struct, sys
made, failed = 0, []
while not select.select([sys.stdin], [], [], 0.01)[0]:
    for address in sys.argv[1:]:
        host, _, port = address.rpartition(":")
        with socket.socket(socket.AF_INET if host else socket.AF_UNIX) as peer:
            # Blocks where the backlog is full, as a socket with a timeout does not.
            seconds = struct.pack("ll", 30, 0)
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, seconds)
            try:
                peer.connect((host, int(port)) if host else address)
                made += 1
            except OSError as error:
                failed.append(f"{address}: {error}")
print([made, failed])
"""


@dataclass(frozen=True)
class Connector:
    process: subprocess.Popen[str]

    def stop(self) -> int:
        """Ends the process; returns how many connections it made, if none failed."""
        said, _ = self.process.communicate("")
        made, failed = ast.literal_eval(said)
        assert not failed
        return made


@contextlib.contextmanager
def connecting(*addresses: Path | str) -> Iterator[Connector]:
    """Runs a Connector for `addresses`, each of which is a path or host:port."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *map(str, addresses)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield Connector(process)
