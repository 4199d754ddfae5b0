"""The seams between Pando and engines: the tested releases of each engine, and the
parts of the engine that each seam needs.

Engines change their internals from release to release. An adapter calls require_seam()
when its engine loads it, before it imports any of its own modules.
"""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Sequence
from dataclasses import dataclass

from pando_kv._seams.changes import changes

_TRY_ANYWAY = "PANDO_ANY_ENGINE_VERSION"
# An error names at most so many changes; `make test-engines NEWEST=1` names all.
_MOST_CHANGES = 3


@dataclass(frozen=True)
class Seam:
    """The engine of one adapter, and what was tested of that engine. Immutable."""

    engine: str
    versions: tuple[str, ...]
    """The versions of the engine that were tested."""
    leans_on: str = ""
    """The module of this package that lists the names which the seam needs; empty if
    the engine's sources are compared instead."""


SEAMS = {
    "PandoConnector": Seam("vLLM", ("0.31.0", "0.32.0", "0.33.0"), "vllm_connector"),
    "PandoOffloadingSpec": Seam(
        "vLLM", ("0.31.0", "0.32.0", "0.33.0"), "vllm_offloading"
    ),
    "--radix-cache-backend pando": Seam(
        "SGLang", ("0.5.22", "0.5.23"), "sglang_prefix_cache"
    ),
    "PandoLinker": Seam("SGLang", ("0.5.23",), "sglang_linker"),
    # mini-SGLang has no releases, so its versions are commits.
    "pando_kv.minisgl": Seam("mini-SGLang", ("20fcd7f",)),
}


def require_seam(name: str, version: str | None = None) -> None:
    """Raises RuntimeError, in one sentence, if the engine's release was not tested or
    if parts of the engine differ from the tested ones. `version` overrides the version
    that the engine states itself. PANDO_ANY_ENGINE_VERSION=1 turns the check off."""
    if os.environ.get(_TRY_ANYWAY) == "1":
        return
    seam = SEAMS[name]
    version = version or _version(seam.engine)
    changed = _changes(name, version)
    if version in seam.versions and not changed:
        return
    where = f", where {_listed(_cut(changed))}" if changed else ""
    raise RuntimeError(
        f"{name} was tested with {seam.engine} {_listed(seam.versions)}, and this is "
        f"{seam.engine} {version}{where}; {_TRY_ANYWAY}=1 tries it nevertheless"
    )


def changes_of(name: str) -> list[str]:
    """Returns the differences between the installed engine and the parts that the seam
    needs, each as a part of a sentence."""
    module = SEAMS[name].leans_on
    if not module:
        return []
    return changes(importlib.import_module(f"pando_kv._seams.{module}").LEANS_ON)


@functools.cache
def _changes(name: str, version: str) -> list[str]:
    return changes_of(name)


def _version(engine: str) -> str:
    version: str = importlib.import_module(engine.lower()).__version__
    return version


def _cut(changed: list[str]) -> list[str]:
    more = len(changed) - _MOST_CHANGES
    if more <= 0:
        return changed
    return [*changed[:_MOST_CHANGES], f"{more} more differ"]


def _listed(parts: Sequence[str]) -> str:
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last
