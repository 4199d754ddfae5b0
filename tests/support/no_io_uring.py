"""A library that refuses io_uring to the process that preloads it."""

from pathlib import Path

from preload import preload

_SOURCE = Path(__file__).with_suffix(".c")


def without_io_uring(folder: Path, environment: dict[str, str]) -> dict[str, str]:
    """Returns the environment with the library added to those that it preloads."""
    libraries = [preload(_SOURCE, folder)["LD_PRELOAD"]]
    if "LD_PRELOAD" in environment:
        libraries.append(environment["LD_PRELOAD"])
    return environment | {"LD_PRELOAD": ":".join(libraries)}
