"""The stand-in for the CUDA driver (cuda_stand_in/), for processes a test starts.

No GPU is seen with it, and no kernel runs.
"""

import pytest
from pandod_process import binary


def environment(**settings: object) -> dict[str, str]:
    """The environment of a process that is to find it; for settings see settings.h."""
    names = {name: f"CUDA_STAND_IN_{name.upper()}" for name in settings}
    if "visible" in names:
        names["visible"] = "CUDA_VISIBLE_DEVICES"
    return _found("cuda_stand_in") | {
        names[name]: str(value) for name, value in settings.items()
    }


def too_old() -> dict[str, str]:
    """A process then finds a driver of CUDA 11.4."""
    return _found("cuda_stand_in/of_cuda_11")


def _found(folder: str) -> dict[str, str]:
    path = binary().parents[1] / folder
    if not (path / "libcuda.so.1").exists():
        pytest.skip(f"{binary()} was built without the CUDA toolkit")
    return {"LD_LIBRARY_PATH": str(path)}
