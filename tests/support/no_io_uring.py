"""A library that is preloaded into a process to refuse io_uring to it."""

from pathlib import Path

from preload import preload

_SOURCE = Path(__file__).with_suffix(".c")


def without_io_uring(folder: Path, environment: dict[str, str]) -> dict[str, str]:
    """The environment, with this preloaded, too."""
    libraries = [preload(_SOURCE, folder)["LD_PRELOAD"]]
    if "LD_PRELOAD" in environment:
        libraries.append(environment["LD_PRELOAD"])
    return environment | {"LD_PRELOAD": ":".join(libraries)}
