"""Runs engines on the pool of a pandod, or on its blocks."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
from typing import Any

from pando_server.engine_flags import (
    BadCommandError,
    block_flags_for,
    engine_of,
    environment_for,
    flags_for,
    with_port,
)
from pando_server.programs import path_of


def run(options: argparse.Namespace) -> int:
    """Runs the engines and returns the exit status of the first one that ends; the
    other engines are then terminated. Returns 2 for a bad command, and 1 without a
    pandod."""
    try:
        engine_of(options.engine)
        by_port = [with_port(options.engine, number) for number in range(options.n)]
    except BadCommandError as error:
        print(f"pando run: {error}", file=sys.stderr)
        return 2
    status = _status(options.address)
    if status is None:
        print("pando run: start a pandod first, with `pando up`", file=sys.stderr)
        return 1
    pool = status["pool"]
    added = environment_for(status["address"], pool)
    if pool.get("is_absent"):
        flags = block_flags_for(options.engine)
    else:
        flags = flags_for(options.engine, pool)
    words = [word for pair in flags.items() for word in pair if word]
    engines = by_port if options.n > 1 else [options.engine]
    commands = [[*engine, *words] for engine in engines]
    for command in commands:
        variables = [f"{name}={shlex.quote(value)}" for name, value in added.items()]
        print(*variables, shlex.join(command), flush=True)
    return _run_all(commands, os.environ | added)


def _status(address: str) -> dict[str, Any] | None:
    """Returns what pandod reports of itself, or None if pandoctl failed and has printed
    why."""
    where = ["--address", address] if address else []
    asked = subprocess.run(
        [path_of("pandoctl"), *where, "status", "-o", "json"],
        stdout=subprocess.PIPE,
        text=True,
    )
    return json.loads(asked.stdout) if asked.returncode == 0 else None


def _run_all(commands: list[list[str]], environment: dict[str, str]) -> int:
    engines: list[subprocess.Popen[bytes]] = []

    def stop(*_: object) -> None:
        for engine in engines:
            engine.terminate()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    try:
        for command in commands:
            engines.append(subprocess.Popen(command, env=environment))
    except OSError as error:
        print(f"pando run: {error}", file=sys.stderr)
        stop()
        return 1
    pid, status = os.wait()
    code = os.waitstatus_to_exitcode(status)
    for engine in engines:
        if engine.pid == pid:
            engine.returncode = code
    stop()
    for engine in engines:
        engine.wait()
    # A shell reports a signal in the same way: as 128 plus the signal's number.
    return code if code >= 0 else 128 - code
