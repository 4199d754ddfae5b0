"""Real routers, each in a process of its own."""

import json
import re
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from eventually import eventually
from metrics_page import free_address

MODEL = "model"
_CREDITED = re.compile(r"credited_prefix_tokens=(\d+)")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Source:
    """A machine as routers know it."""

    number: int
    events: str
    replay: str
    block_tokens: int
    engine: str = ""
    """The base URL of the machine's engine."""


def _ask(url: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read() or b"null")


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=30):
            return True
    except OSError:
        return False


@contextmanager
def _process(arguments: list[object], log: Path) -> Iterator[None]:
    with (
        log.open("wb") as out,
        subprocess.Popen([*map(str, arguments)], stdout=out, stderr=out) as process,
    ):
        try:
            yield
            assert process.poll() is None, f"it ended: {log.read_text()[-2000:]}"
        finally:
            process.kill()


class _Engine(BaseHTTPRequestHandler):
    """The part of an engine that a router needs; it answers with its address."""

    def do_GET(self) -> None:
        self._answer({"data": [{"id": MODEL, "object": "model"}], "model_path": MODEL})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"] or 0))
        address = "{}:{}".format(*self.server.server_address)
        choice = {"index": 0, "text": address, "finish_reason": "stop"}
        self._answer({"object": "text_completion", "model": MODEL, "choices": [choice]})

    def log_message(self, *arguments: object) -> None:
        """Logs nothing."""

    def _answer(self, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@contextmanager
def engine() -> Iterator[str]:
    """Yields the base URL of a stand-in for an engine."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Engine) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield "http://{}:{}".format(*server.server_address)
        server.shutdown()
        thread.join()


class DynamoIndexer:
    """Dynamo's index of the blocks that each machine holds."""

    def __init__(self, address: str) -> None:
        self._url = f"http://{address}"

    def register(self, source: Source) -> None:
        _ask(
            f"{self._url}/register",
            {
                "instance_id": source.number,
                "endpoint": source.events,
                "replay_endpoint": source.replay,
                "model_name": MODEL,
                "block_size": source.block_tokens,
            },
        )

    def holds(self, tokens: list[int], **namespace: str) -> dict[int, int]:
        """Returns the tokens that each machine holds; one without any may be absent."""
        body = {"token_ids": tokens, "model_name": MODEL} | namespace
        answer = _ask(f"{self._url}/query", body)
        return {int(k): v["gpu"] for k, v in answer["instances"].items()}

    def tiers(self, tokens: list[int], **namespace: str) -> dict[str, int]:
        """Returns where the only machine's tokens end in each tier, or {}."""
        body = {"token_ids": tokens, "model_name": MODEL} | namespace
        answer = _ask(f"{self._url}/query", body)
        return {
            tier: holder[tier]
            for holder in answer["instances"].values()
            for tier in ("gpu", "cpu", "disk")
        }


@contextmanager
def dynamo_indexer(environment: Path, folder: Path) -> Iterator[DynamoIndexer]:
    address = free_address()
    port = address.split(":")[1]
    command = [environment / "bin/python", "-m", "dynamo.indexer"]
    command += ["--port", port, "--threads", 1]
    with _process(command, folder / "dynamo-indexer.log"):
        eventually(lambda: _answers(f"http://{address}/workers"))
        yield DynamoIndexer(address)


class DynamoSelector:
    """Dynamo's choice of a worker."""

    def __init__(self, address: str) -> None:
        self._url = f"http://{address}"

    def register(self, source: Source) -> None:
        _ask(
            f"{self._url}/workers",
            {
                "worker_id": source.number,
                "model_name": MODEL,
                "block_size": source.block_tokens,
                "endpoint": source.engine,
                "kv_events_endpoint": source.events,
                "replay_endpoint": source.replay,
                "total_kv_blocks": 1000,
                "max_num_batched_tokens": 8192,
            },
        )

    def choose(self, tokens: list[int]) -> tuple[int, int]:
        """Returns the machine, and the number of tokens that it is thought to hold."""
        answer = _ask(f"{self._url}/select", {"model_name": MODEL, "token_ids": tokens})
        return answer["worker_id"], answer["overlap"]["gpu"]


@contextmanager
def dynamo_selector(environment: Path, folder: Path) -> Iterator[DynamoSelector]:
    address = free_address()
    port = address.split(":")[1]
    command = [environment / "bin/python", "-m", "dynamo.select_service"]
    command += ["--port", port, "--threads", 1]
    with _process(command, folder / "dynamo-selector.log"):
        eventually(lambda: _answers(f"http://{address}/workers"))
        yield DynamoSelector(address)


class VllmRouter:
    """A vllm-router with the policy kv_aware."""

    def __init__(self, address: str, log: Path, sources: list[Source]) -> None:
        self._url = f"http://{address}"
        self._log = log
        self._numbers = {s.engine.removeprefix("http://"): s.number for s in sources}

    def choose(self, tokens: list[int]) -> tuple[int, int]:
        """Returns the machine that got the request, and the tokens credited to it."""
        answered = len(self._credits())
        body = {"model": MODEL, "prompt": tokens, "max_tokens": 1}
        answer = _ask(f"{self._url}/v1/completions", body)
        eventually(lambda: len(self._credits()) > answered)
        return self._numbers[answer["choices"][0]["text"]], self._credits()[-1]

    def _credits(self) -> list[int]:
        text = _COLOUR.sub("", self._log.read_text())
        return [int(number) for number in _CREDITED.findall(text)]


@contextmanager
def vllm_router(
    environment: Path, folder: Path, sources: list[Source]
) -> Iterator[VllmRouter]:
    address, metrics = free_address(), free_address()
    log = folder / "vllm-router.log"
    command: list[object] = [environment / "bin/vllm-router", "--host", "127.0.0.1"]
    command += ["--port", address.split(":")[1]]
    command += ["--prometheus-port", metrics.split(":")[1]]
    command += ["--policy", "kv_aware", "--kv-event-model", MODEL]
    command += ["--kv-event-block-size", sources[0].block_tokens]
    command += ["--log-level", "debug"]
    command += ["--worker-urls", *(source.engine for source in sources)]
    for source in sources:
        command += ["--kv-event-source", f"{source.engine}={source.events}"]
        command += ["--kv-event-replay-source", f"{source.engine}={source.replay}"]
    with _process(command, log):
        eventually(lambda: _answers(f"http://{address}/health"))
        yield VllmRouter(address, log, sources)
