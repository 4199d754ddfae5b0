"""A pandod with credentials, and callers that show tokens."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from pandod_process import Pandod, serving
from raw_calls import RawCalls
from users import open_folder

ROLES = ["reader", "worker", "admin"]


def token_of(name: str) -> str:
    return f"the-token-of-{name}-and-nobody-else"


def config_of(folder: Path, credentials: str) -> Path:
    config = folder / "pando.yaml"
    config.write_text(f"credentials:{credentials}")
    return config


@contextlib.contextmanager
def guarded(folder: Path, credentials: str, **options: object) -> Iterator[Pandod]:
    config = config_of(folder, credentials.replace("FOLDER", str(folder)))
    with serving(folder, config=config, **options) as pandod:
        yield pandod


@contextlib.contextmanager
def folder_of_tokens() -> Iterator[Path]:
    """Yields a folder with a token file for each role and for two tenants, a and b."""
    with open_folder() as path:
        for name in (*ROLES, "a", "b"):
            (path / f"{name}.token").write_text(token_of(name) + "\n")
        yield path


def calls(pandod: Pandod, name: str | None) -> RawCalls:
    return RawCalls(pandod.address, token_of(name) if name else None)
