"""The native module, or the reason for its absence. The package works without it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

native: Any
try:
    native = import_module("pando_kv._native")
except ImportError as error:
    native = None
    WHY_NOT_NATIVE = f"pando_kv is not built with its native module ({error})"
else:
    WHY_NOT_NATIVE = ""
