"""Starts pandod in the background."""

from __future__ import annotations

import os
import re
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
    if _serves(address):
        print(f"pandod serves already at {address}; these options are not used")
        return 0
    process, log = _start(arguments)
    if process.poll() is not None:
        last = log.read_text(errors="replace").strip().splitlines()[-1:]
        print(f"pandod has not started: {''.join(last)}", file=sys.stderr)
        return process.returncode
    http = _value_of("http", options.stdout)
    console = f"http://{http}/console/" if http else "off"
    print(f"pandod serves at {address} (process {process.pid})")
    print(f"console: {console}")
    print(f"log:     {log}")
    print(f"stop:    pandoctl --address {address} drain --exit")
    return 0


def _value_of(option: str, config: str) -> str:
    """From what --print-config prints, which is a line for each option."""
    found = re.search(rf"^{option}: (.*?)  # ", config, re.MULTILINE)
    return found[1].strip("\"'") if found else ""


def _serves(address: str) -> bool:
    asked = subprocess.run(
        [path_of("pandoctl"), "--address", address, "health"], capture_output=True
    )
    return asked.returncode == 0


def _start(arguments: list[str]) -> tuple[subprocess.Popen[bytes], Path]:
    """A pandod that is ready, or has ended; and its log."""
    descriptor, log = tempfile.mkstemp(prefix="pandod-", suffix=".log")
    with (
        tempfile.TemporaryDirectory() as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager,
    ):
        path = f"{folder}/notify"
        manager.bind(path)
        process = subprocess.Popen(
            [path_of("pandod"), *arguments],
            env=os.environ | {"NOTIFY_SOCKET": path},
            stdin=subprocess.DEVNULL,
            stdout=descriptor,
            stderr=descriptor,
            start_new_session=True,
        )
        os.close(descriptor)
        manager.settimeout(0.1)
        while process.poll() is None:
            try:
                if b"READY=1" in manager.recv(4096):
                    break
            except TimeoutError:
                continue
    return process, Path(log)
