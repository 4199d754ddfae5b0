"""A digest of everything but the name that determines a model's KV.

Engines may serve two models of equal shape under one name, with another rope_theta or
another quantization. The digest tells them apart. pandod keeps one digest for the pool
and compares it when a worker attaches (MappedPool, AttachPool).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from typing import Any

ANY_CONFIGURATION = "PANDO_ANY_MODEL_CONFIGURATION"

_DIGITS = 16
# The path of the model and the version of the library do not change its KV.
_NOT_OF_THE_MODEL = ("_name_or_path", "transformers_version")


def model_digest(configuration: Mapping[str, Any], **chosen: Any) -> str:
    """Returns the digest of a model, as 16 hexadecimal digits. `configuration` is the
    model's, as transformers or the engine has it; `chosen` is what the engine adds: the
    revision, the element types, the quantization. Returns an empty string, which is not
    compared, if the operator has set PANDO_ANY_MODEL_CONFIGURATION=1 to vouch for all
    engines of the pool."""
    if os.environ.get(ANY_CONFIGURATION) == "1":
        return ""
    fields = {
        name: value
        for name, value in configuration.items()
        if name not in _NOT_OF_THE_MODEL
    }
    text = json.dumps(_plain([fields, chosen]), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def _plain(value: Any) -> Any:
    """Returns the value in JSON's types, and the same in each process."""
    if hasattr(value, "to_dict"):
        value = value.to_dict()
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, set | frozenset):
        return sorted(str(each) for each in value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)
