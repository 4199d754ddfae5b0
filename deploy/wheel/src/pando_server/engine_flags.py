"""Derives the flags that put an engine on a pool, or on blocks, from what pandod
reports of itself.

docs/engines.md has the same flags as a table.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FIRST_PORTS = {"sglang": 30000, "vllm": 8000}


class BadCommandError(Exception):
    """An error: the command starts no engine that Pando has an adapter for, or its port
    is no number."""


def engine_of(command: list[str]) -> str:
    """Returns the name of the engine that a command starts, such as "vllm serve ..." or
    "python3 -m vllm.entrypoints.openai.api_server ...". Raises BadCommandError if it
    starts none."""
    words = [Path(command[0]).name]
    if "-m" in command[:-1]:
        words.append(command[command.index("-m") + 1].split(".")[0])
    for engine in FIRST_PORTS:
        if engine in words:
            return engine
    raise BadCommandError(
        f"'{command[0]}' is no engine; may be {' or '.join(FIRST_PORTS)}"
    )


def environment_for(address: str, pool: dict[str, Any]) -> dict[str, str]:
    added = {"PANDO_ADDRESS": address}
    if pool.get("model"):
        added["PANDO_MODEL"] = pool["model"]
    return added


def block_flags_for(command: list[str]) -> dict[str, str]:
    """Returns the flags for blocks that the command lacks, in order. A flag with an
    empty string takes no value."""
    if engine_of(command) == "sglang":
        linker = {
            "linker": "PandoLinker",
            "linker_module_path": "pando_kv.sglang.linker",
        }
        flag = "--unified-cache-external-linker"
        flags = {
            "--enable-unified-cache-external-linker": "",
            f"{flag}-backend": "dynamic",
            f"{flag}-config": json.dumps(linker),
        }
    else:
        spec = {
            "spec_name": "PandoOffloadingSpec",
            "spec_module_path": "pando_kv.vllm.offloading",
        }
        config = {
            "kv_connector": "OffloadingConnector",
            "kv_role": "kv_both",
            "kv_connector_extra_config": spec,
        }
        flags = {"--kv-transfer-config": json.dumps(config)}
    return _lacking(command, flags)


def flags_for(command: list[str], pool: dict[str, Any]) -> dict[str, str]:
    """Returns the flags for a pool that the command lacks, in order."""
    engine = engine_of(command)
    page_tokens = pool["layout"]["page_tokens"]
    # An open pool has a size only after its first engine has sent a layout.
    has_size = not pool.get("is_open")
    shards = len(pool["shards"])
    if engine == "sglang":
        flags = {"--radix-cache-backend": "pando", "--page-size": str(page_tokens)}
        if has_size:
            tokens = (pool["capacity_pages"] - 1) * page_tokens
            flags["--max-total-tokens"] = str(tokens)
        sizes = ("--tp-size", "--tensor-parallel-size", "--tp")
    else:
        flags = {
            "--block-size": str(page_tokens),
            "--kv-transfer-config": _connector(pool),
        }
        if has_size:
            flags["--num-gpu-blocks-override"] = str(pool["capacity_pages"])
        flags |= {"--enable-prefix-caching": "", "--no-async-scheduling": ""}
        sizes = ("--tensor-parallel-size", "-tp")
    if shards > 1 and not any(_has(command, size) for size in sizes):
        flags[sizes[0]] = str(shards)
    return _lacking(command, flags)


def with_port(command: list[str], number: int) -> list[str]:
    """Returns the command of engine `number`, whose port is the command's port, or the
    engine's default port, plus `number`. Raises BadCommandError if --port is no number.
    """
    first = FIRST_PORTS[engine_of(command)]
    rest = []
    arguments = iter(command)
    for argument in arguments:
        flag, _, value = argument.partition("=")
        if flag != "--port":
            rest.append(argument)
            continue
        value = value or next(arguments, "")
        if not value.isdecimal():
            raise BadCommandError(f"--port is '{value}'; must be a number")
        first = int(value)
    return [*rest, "--port", str(first + number)]


def _connector(pool: dict[str, Any]) -> str:
    config: dict[str, Any] = {"kv_connector": "PandoConnector", "kv_role": "kv_both"}
    page_format = pool["layout"].get("page_format")
    if page_format:
        config["kv_connector_extra_config"] = {"pando_page_format": page_format}
    return json.dumps(config)


def _lacking(command: list[str], flags: dict[str, str]) -> dict[str, str]:
    return {flag: value for flag, value in flags.items() if not _has(command, flag)}


def _has(command: list[str], flag: str) -> bool:
    return any(part == flag or part.startswith(f"{flag}=") for part in command)
