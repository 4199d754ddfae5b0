"""Engines change what an adapter leans on from release to release."""

from __future__ import annotations

import os
from collections.abc import Sequence

_TRY_ANYWAY = "PANDO_ANY_ENGINE_VERSION"


def require_tested_version(engine: str, version: str, tested: Sequence[str]) -> None:
    """Raises RuntimeError, in one sentence, for a version that was not tested."""
    if version in tested or os.environ.get(_TRY_ANYWAY) == "1":
        return
    raise RuntimeError(
        f"pando-kv was tested with {engine} {', '.join(tested)}, and this is {engine} "
        f"{version}; {_TRY_ANYWAY}=1 tries it nevertheless"
    )
