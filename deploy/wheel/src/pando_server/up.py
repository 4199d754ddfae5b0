"""Starts pandod in the background, under a keeper."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from pando_server.programs import path_of


def up(arguments: list[str]) -> int:
    """Starts pandod under a keeper and returns 0, also if a pandod serves at the
    address already. If pandod does not start, returns its exit status, or 1 if it was
    killed."""
    options = subprocess.run(
        [path_of("pandod"), *arguments, "--print-config"],
        stdout=subprocess.PIPE,
        text=True,
    )
    if options.returncode != 0:
        return options.returncode  # pandod has printed why
    address = f"unix:{_value_of('socket', options.stdout)}"
    if _ask(address, "health") is not None:
        print(f"pandod serves already at {address}; these options are not used")
        print(f"console: {_console_of(address)}")
        return 0
    process, log, died = _start(arguments)
    if process.returncode is not None:
        last = log.read_text(errors="replace").strip().splitlines()[-1:]
        print(f"pandod has not started: {died or ''.join(last)}", file=sys.stderr)
        return 1 if died else process.returncode
    http = _value_of("http", options.stdout)
    has_console = http and _value_of("console", options.stdout) != "no"
    print(f"pandod serves at {address}")
    print(f"keeper:  process {process.pid} starts it again when it is killed")
    print(f"console: {f'http://{http}/console/' if has_console else 'off'}")
    print(f"log:     {log}")
    print(f"stop:    pandoctl --address {address} drain --exit")
    return 0


def _value_of(option: str, config: str) -> str:
    """Returns the value of an option from the output of --print-config, which has a
    line for each option; an option without a line is empty."""
    found = re.search(rf"^{option}: (.*?)  # ", config, re.MULTILINE)
    return found[1].strip("\"'") if found else ""


def _console_of(address: str) -> str:
    """Returns the console URL that the pandod at the address reports, or "off"."""
    status = _ask(address, "status", "-o", "json")
    if status is None:
        return "unknown, because pandoctl status fails"
    return json.loads(status)["stats"]["console_url"] or "off"


def _ask(address: str, *command: str) -> bytes | None:
    """Returns the output of pandoctl, or None if it failed."""
    asked = subprocess.run(
        [path_of("pandoctl"), "--address", address, *command], capture_output=True
    )
    return asked.stdout if asked.returncode == 0 else None


def _start(arguments: list[str]) -> tuple[subprocess.Popen[bytes], Path, str]:
    """Starts a keeper and its pandod. Returns the keeper's process, which has ended if
    pandod did not start; the log; and how pandod was killed, or ""."""
    descriptor, log = tempfile.mkstemp(prefix="pandod-", suffix=".log")
    with (
        tempfile.TemporaryDirectory() as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager,
    ):
        path = f"{folder}/notify"
        manager.bind(path)
        # An exception here would leave the keeper running, because the keeper has a
        # session of its own and does not get the terminal's signals. Interrupts are
        # therefore recorded and raised later.
        interrupts: list[int] = []
        before = signal.signal(signal.SIGINT, lambda n, _: interrupts.append(n))
        process = subprocess.Popen(
            [path_of("pando-keeper"), path_of("pandod"), *arguments],
            env=os.environ | {"NOTIFY_SOCKET": path},
            stdin=subprocess.DEVNULL,
            stdout=descriptor,
            stderr=descriptor,
            start_new_session=True,
        )
        os.close(descriptor)
        died = _wait_until_ready(process, manager, interrupts)
        signal.signal(signal.SIGINT, before)
        if interrupts:
            process.kill()
            raise KeyboardInterrupt
    return process, Path(log), died


def _wait_until_ready(
    process: subprocess.Popen[bytes], manager: socket.socket, interrupts: list[int]
) -> str:
    """Waits until pandod is ready, the keeper has ended, or an interrupt has come.
    Returns how pandod was killed, or ""."""
    manager.settimeout(0.1)
    while process.poll() is None and not interrupts:
        try:
            said = manager.recv(4096).decode()
        except TimeoutError:
            continue
        if "READY=1" in said:
            break
        # The keeper would restart forever a pandod that is killed while it starts.
        process.kill()
        process.wait()
        return said.removeprefix("STATUS=")
    return ""
