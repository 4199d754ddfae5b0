"""Fails when an include crosses the layers of the source tree.

core knows nobody but itself, and cuda neither; gpu knows cuda; service knows
core, gpu and the protos; the clients know the protos and cuda. core also keeps
out of threads and clocks.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)

# Folder -> what its sources may not include.
FORBIDDEN = {
    "core": (
        r"gpu/|service/|pando/|grpc|google/|prometheus/|spdlog/|cuda"
        r"|thread$|chrono$|absl/time/clock\.h"
    ),
    "cuda": r"core/|gpu/|service/|pando/|grpc|google/|prometheus/|spdlog/",
    "gpu": r"core/|service/|pando/|grpc|google/|prometheus/|spdlog/",
    "service": r"cuda|clients/|pando/client|tests/",
    "clients/cpp": r"core/|gpu/|service/",
    "tools/pandoctl": r"core/|cuda|gpu/|service/|clients/|pando/client",
}


def violations() -> list[str]:
    files = subprocess.run(
        ["git", "ls-files", "*.h", "*.cc", "*.cu", "*.cuh"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    found = []
    for file in files:
        for folder, pattern in FORBIDDEN.items():
            if not file.startswith(folder + "/"):
                continue
            for header in INCLUDE.findall((ROOT / file).read_text()):
                if re.match(pattern, header):
                    found.append(f"{file} includes {header}")
    return found


if __name__ == "__main__":
    found = violations()
    print("\n".join(found) or "layers: ok")
    sys.exit(bool(found))
