"""A digest of all that determines a model's KV, beside its name.

Engines may serve two models of equal shape under one name: another rope_theta, another
quantization. The digest tells them apart; the pool has one (MappedPool, AttachPool).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from typing import Any

ANY_CONFIGURATION = "PANDO_ANY_MODEL_CONFIGURATION"

_DIGITS = 16
# Where the model lies, and which library read it, says nothing of its KV.
_NOT_OF_THE_MODEL = ("_name_or_path", "transformers_version")


def model_digest(configuration: Mapping[str, Any], **chosen: Any) -> str:
    """`configuration` is the model's, as transformers or the engine has it; `chosen` is
    what the engine adds: the revision, the element types, the quantization. Empty,
    which is compared with nothing, where the operator vouches for all engines of the
    pool."""
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
    """In JSON's types, and equal in each process."""
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
