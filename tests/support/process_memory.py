"""The memory that a process uses."""

from pathlib import Path

MEBIBYTE = 1 << 20


def memory_of(pid: int, which: str) -> int:
    """Returns the bytes that a process has (VmRSS), or had at most (VmHWM)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(which):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"no {which}")
