"""Environments in which a process finds the stand-in for the CUDA driver
(cuda_stand_in/).

With the stand-in no real GPU is visible, and no kernel runs.
"""

import pytest
from pandod_process import binary


def environment(**settings: object) -> dict[str, str]:
    """Returns the environment of a process that finds the stand-in.

    The settings are those of settings.h.
    """
    names = {name: f"CUDA_STAND_IN_{name.upper()}" for name in settings}
    if "visible" in names:
        names["visible"] = "CUDA_VISIBLE_DEVICES"
    return _found("cuda_stand_in") | {
        names[name]: str(value) for name, value in settings.items()
    }


def too_old() -> dict[str, str]:
    """Returns the environment of a process that finds a driver of CUDA 11.4."""
    return _found("cuda_stand_in/of_cuda_11")


def _found(folder: str) -> dict[str, str]:
    path = binary().parents[1] / folder
    if not (path / "libcuda.so.1").exists():
        pytest.skip(f"{binary()} was built without the CUDA toolkit")
    return {"LD_LIBRARY_PATH": str(path)}
