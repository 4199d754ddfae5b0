"""The names of an engine, shortened to fit a field of a namespace."""

from __future__ import annotations

import hashlib

# The largest number of bytes that pandod accepts in a field of a namespace.
_MAX_BYTES = 256


def short_name(text: str) -> str:
    """Returns the text, or a digest of the text if pandod would not accept it."""
    data = text.encode()
    if len(data) <= _MAX_BYTES:
        return text
    return "sha256:" + hashlib.sha256(data).hexdigest()
