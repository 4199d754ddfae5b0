"""Prometheus' own programs, and a Prometheus that scrapes for a test."""

import contextlib
import json
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from eventually import eventually
from metrics_page import free_address
from pandod_process import REPOSITORY

LIMIT_SECONDS = 30


def prometheus_tool(name: str) -> str:
    """Returns the path of a program of Debian's package prometheus, where
    tools/setup.sh puts it or in PATH; skips the test without one."""
    local = REPOSITORY / "build" / "prometheus" / "usr" / "bin" / name
    path = str(local) if local.exists() else shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is neither in {local.parent} nor in PATH")
    return path


def promtool(*arguments: str | Path) -> None:
    """Runs promtool, and fails with the errors that it finds."""
    command = [prometheus_tool("promtool"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


class Prometheus:
    """The API of a Prometheus that runs."""

    def __init__(self, address: str) -> None:
        self._address = address

    def query(self, expr: str) -> list[dict]:
        """Returns the present samples, each with `metric` (its labels) and `value`."""
        return self.get("query", query=expr)["result"]

    def query_range(self, expr: str, start: float, end: float) -> list[dict]:
        """Returns the series, each with one value a second in `values`."""
        answer = self.get("query_range", query=expr, start=start, end=end, step=1)
        return answer["result"]

    def get(self, path: str, **parameters: object) -> Any:
        """Returns the data of an answer of the API; fails with the text of an error."""
        query = urllib.parse.urlencode(parameters)
        url = f"http://{self._address}/api/v1/{path}?{query}"
        try:
            with urllib.request.urlopen(url, timeout=LIMIT_SECONDS) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            with error:
                pytest.fail(error.read().decode())

    def page(self, path: str) -> str:
        url = f"http://{self._address}/{path}"
        with urllib.request.urlopen(url, timeout=LIMIT_SECONDS) as answer:
            return answer.read().decode()

    def is_ready(self) -> bool:
        ready = f"http://{self._address}/-/ready"
        try:
            with urllib.request.urlopen(ready, timeout=LIMIT_SECONDS) as answer:
                return answer.status == 200
        except OSError:
            return False


@contextlib.contextmanager
def scraping(config: Path, folder: Path) -> Iterator[Prometheus]:
    """Runs a Prometheus with this configuration, which keeps its data in the folder."""
    address = free_address()
    log_path = folder / "prometheus.log"
    command = [
        prometheus_tool("prometheus"),
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={address}",
        # The shipped alerts link to these pages.
        f"--web.user-assets={REPOSITORY / 'docs'}",
        "--log.level=warn",
    ]
    with (
        log_path.open("wb") as log,
        subprocess.Popen(command, stdout=log, stderr=log) as process,
    ):
        try:
            prometheus = Prometheus(address)
            eventually(lambda: prometheus.is_ready() or process.poll() is not None)
            assert process.poll() is None, log_path.read_text()
            yield prometheus
        finally:
            process.terminate()
