"""The comparison of the names that a seam needs with the installed engine."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Mapping
from typing import Any


def changes(leans_on: Mapping[str, str | None]) -> list[str]:
    """Returns a part of a sentence for each name that is missing or has other
    parameters.

    `leans_on` maps each name, written `module:name`, to its parameters, separated by
    blanks; a parameter in brackets exists in some releases only. For a name that maps
    to None it is enough that the name exists, for example as an annotated field.
    """
    found = [_change(name, parameters) for name, parameters in leans_on.items()]
    return [change for change in found if change]


def _change(name: str, parameters: str | None) -> str:
    short = name.partition(":")[2]
    try:
        thing = _resolve(name, is_field_enough=parameters is None)
    except (ImportError, AttributeError):
        return f"{short} is not there"
    if parameters is None:
        return ""
    signature = inspect.signature(inspect.unwrap(thing))
    added = {each.strip("[]") for each in parameters.split() if each.startswith("[")}
    wanted = [each for each in parameters.split() if not each.startswith("[")]
    has = list(signature.parameters)
    if [each for each in has if each not in added] == wanted:
        return ""
    return f"{short} takes ({', '.join(has)}) in place of ({', '.join(wanted)})"


def _resolve(name: str, *, is_field_enough: bool) -> Any:
    owner, _, last = name.rpartition(".")
    if is_field_enough and "." in name.partition(":")[2]:
        fields = getattr(pkgutil.resolve_name(owner), "__annotations__", {})
        if last in fields:
            return None
    return pkgutil.resolve_name(name)
