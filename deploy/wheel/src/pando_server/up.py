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
    """Returns pandod's exit status where it does not start, else 0."""
    options = subprocess.run(
        [path_of("pandod"), *arguments, "--print-config"],
        stdout=subprocess.PIPE,
        text=True,
    )
    if options.returncode != 0:
        return options.returncode  # pandod has said why
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
    """From what --print-config prints, which is a line for each option."""
    found = re.search(rf"^{option}: (.*?)  # ", config, re.MULTILINE)
    return found[1].strip("\"'") if found else ""


def _console_of(address: str) -> str:
    """As the pandod that serves there says."""
    status = _ask(address, "status", "-o", "json")
    if status is None:
        return "unknown, because pandoctl status fails"
    return json.loads(status)["stats"]["console_url"] or "off"


def _ask(address: str, *command: str) -> bytes | None:
    """The answer of pandoctl; None where it fails."""
    asked = subprocess.run(
        [path_of("pandoctl"), "--address", address, *command], capture_output=True
    )
    return asked.stdout if asked.returncode == 0 else None


def _start(arguments: list[str]) -> tuple[subprocess.Popen[bytes], Path, str]:
    """The keeper of a pandod that is ready, or a keeper that has ended; its log; and
    how pandod was killed, if it was."""
    descriptor, log = tempfile.mkstemp(prefix="pandod-", suffix=".log")
    with (
        tempfile.TemporaryDirectory() as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager,
    ):
        path = f"{folder}/notify"
        manager.bind(path)
        # An exception, while the keeper is being started, would leave it behind: it
        # does not get the terminal's signals itself.
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
    """Or until the keeper has ended, or is to be. Returns how pandod was killed, if it
    was."""
    manager.settimeout(0.1)
    while process.poll() is None and not interrupts:
        try:
            said = manager.recv(4096).decode()
        except TimeoutError:
            continue
        if "READY=1" in said:
            break
        # One that is killed as it starts would be started again without end.
        process.kill()
        process.wait()
        return said.removeprefix("STATUS=")
    return ""
