"""Requests to a pandod over HTTP, and its metrics as numbers."""

import contextlib
import re
import socket
import urllib.error
import urllib.request
from dataclasses import dataclass

_SERIES = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def free_address(ports: int = 1) -> str:
    """Returns the address of the first of `ports` free ports in a row."""
    for _ in range(100):
        with contextlib.ExitStack() as probes:
            first = _bound(probes, 0)
            try:
                for following in range(first + 1, first + ports):
                    _bound(probes, following)
            except (OSError, OverflowError):
                continue
            return f"127.0.0.1:{first}"
    raise OSError(f"no {ports} ports in a row are free")


def _bound(probes: contextlib.ExitStack, port: int) -> int:
    probe = probes.enter_context(socket.socket())
    probe.bind(("127.0.0.1", port))
    return probe.getsockname()[1]


def get(address: str, path: str) -> tuple[int, str]:
    """Returns the status and the text."""
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@dataclass(frozen=True)
class Series:
    name: str
    labels: dict[str, str]
    value: float


class MetricsPage:
    """One answer of /metrics."""

    def __init__(self, address: str) -> None:
        status, self.text = get(address, "/metrics")
        assert status == 200
        self.series = [
            _series(line) for line in self.text.splitlines() if line[:1] != "#"
        ]

    def sum(self, name: str, **labels: str) -> float:
        """Returns the sum of the series with these labels; fails if there are none."""
        found = [s.value for s in self._having(name, labels)]
        assert found, f"no series {name} {labels}"
        return sum(found)

    def by(self, label: str, name: str, **labels: str) -> dict[str, float]:
        """Returns the sum of the series for each value of `label`."""
        values = {s.labels[label] for s in self._having(name, labels)}
        return {v: self.sum(name, **labels, **{label: v}) for v in values}

    def rpcs(self, method: str, code: str) -> float:
        """Returns the number of a method's calls that ended with this code."""
        return self.sum("grpc_server_handled_total", grpc_method=method, grpc_code=code)

    def _having(self, name: str, labels: dict[str, str]) -> list[Series]:
        return [
            s
            for s in self.series
            if s.name == name and labels.items() <= s.labels.items()
        ]


def _series(line: str) -> Series:
    match = _SERIES.match(line)
    assert match, f"not a series: {line}"
    labels = {
        name: re.sub(r"\\(.)", r"\1", value)
        for name, value in _LABEL.findall(match[2] or "")
    }
    return Series(match[1], labels, float(match[3]))
