"""Names of engines as fields of a namespace."""

from __future__ import annotations

import hashlib

# The most bytes that pandod takes in a field of a namespace.
_MAX_BYTES = 256


def short_name(text: str) -> str:
    """The text, or a digest of it where pandod would not take it."""
    data = text.encode()
    if len(data) <= _MAX_BYTES:
        return text
    return "sha256:" + hashlib.sha256(data).hexdigest()
