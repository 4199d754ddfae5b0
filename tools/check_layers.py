"""Fails when an include crosses the layers of the source tree.

Each folder of the tables may include itself and the folders of its row. Headers from
outside the project (the standard library, Abseil) are free, except those that FOREIGN
forbids. A folder with code that has no row fails, too.

usage: check_layers.py [ROOT]

ROOT is a checkout; the default is the checkout of this file.
"""

import re
import subprocess
import sys
from pathlib import Path

THIS_CHECKOUT = Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)

# Each folder -> the folders that it may include.
FOLDERS = {
    "base": set(),
    "lane": {"base"},
    "core": {"base"},
    "cuda": {"base"},
    "os": {"base"},
    "gpu": {"base", "cuda"},
    "keeper": {"base"},
    "mover": {"base", "cuda"},
    "events": {"base", "core", "os"},
    "tiers": {"base", "core", "events", "gpu", "mover", "os"},
    "service": {
        "base", "core", "events", "gpu", "lane", "mover", "os", "proto", "tiers",
    },
    "clients": {"base", "cuda", "lane", "proto"},
    "replay": {"base", "core", "client", "clients", "proto"},
    "examples": {"client"},
    "tools": {"base", "client", "clients", "proto", "replay"},
    "bench": {
        "base", "client", "core", "cuda", "events", "gpu", "os", "proto",
        "replay", "service", "tiers",
    },
}  # fmt: skip

# The same for the rooms of a folder, lower rooms first. A room is a subfolder, or a
# header at the top of the folder. All other files at the top may include every room.
ROOMS = {
    "core": {
        "requests": set(),
        "nodes": {"requests"},
        "eviction": {"nodes", "requests"},
        "reuse": {"eviction", "nodes", "requests"},
        "tree": {"eviction", "nodes", "requests", "reuse"},
        "journal": {"eviction", "nodes", "requests", "reuse", "tree"},
        "blocks": {"eviction", "nodes", "requests"},
        "sessions": {"blocks", "journal", "nodes", "requests", "reuse", "tree"},
        "parts": {
            "blocks", "eviction", "journal", "nodes", "requests", "sessions",
            "tree",
        },
        "match": {"nodes", "parts", "requests", "sessions", "tree"},
        "block_calls": {"blocks", "parts", "requests", "sessions"},
        "operators": {
            "blocks", "eviction", "journal", "nodes", "parts", "requests", "sessions",
            "tree",
        },
    },
    "os": {
        "logging": set(),
        "service_manager.h": set(),
        "keeping": {"logging", "service_manager.h"},
        "sockets": {"keeping", "logging"},
    },
    "tiers": {
        "store_target.h": set(),
        "tier_figures.h": set(),
        "copying": set(),
        "local": {"copying", "store_target.h", "tier_figures.h"},
        "shared": {"copying", "store_target.h", "tier_figures.h"},
        "redis": {"shared"},
        "shared_store.h": {"redis", "shared"},
        "blocks": {"local", "shared", "shared_store.h"},
    },
    "service": {
        "security": set(),
        "options": {"security"},
        "memory": {"options"},
        "calls": {"security"},
        "rpc": {"calls", "security"},
        "http": set(),
        "self_check.h": set(),
        "handlers": {"calls", "memory", "rpc", "self_check.h"},
        "lane": {"calls", "handlers", "memory", "security"},
        "watches": {"calls", "handlers", "rpc"},
        "metrics": {
            "calls", "handlers", "lane", "memory", "rpc", "self_check.h",
            "watches",
        },
        "console": {"calls", "http", "rpc"},
    },
}  # fmt: skip

# The same for the subfolders of bench.
BENCHES = {
    "core": set(),
    "gpu": set(),
    "kv_events": {"bench/load"},
    "load": set(),
    "rpc": {"service/calls", "service/rpc"},
    "scrape": {"bench/load"},
    "tiers": {"bench/load"},
}

# Folders that may include everything.
FREE = {"tests"}

# Each folder -> the foreign headers that it must not include.
FOREIGN = {
    "base": r"grpc|google/|prometheus/|spdlog/|cuda",
    "lane": r"absl/|grpc|google/|prometheus/|spdlog/|cuda",
    "keeper": r"absl/|grpc|google/|prometheus/|spdlog/|cuda",
    "core": r"grpc|google/|prometheus/|spdlog/|cuda"
    r"|thread$|chrono$|absl/time/clock\.h",
    "cuda": r"grpc|google/|prometheus/|spdlog/",
    "mover": r"grpc|google/|prometheus/|cuda",
    "gpu": r"grpc|google/|prometheus/|spdlog/",
    "os": r"prometheus/|cuda",
    "events": r"grpc|google/|prometheus/|spdlog/|cuda",
    "tiers": r"grpc|google/|prometheus/|spdlog/|cuda",
    "service": r"cuda",
}


def folder_of(header: str) -> str | None:
    """Returns the folder of this project that a header is from, or None."""
    top, *rest = header.split("/")
    if top in FOLDERS and rest:
        return top
    if top == "pando":
        # pando/v1/ is generated from the protos; the rest is the C++ client.
        return "proto" if rest[0] == "v1" else "client"
    return None


def crosses_folders(file: str, header: str) -> bool:
    own = file.split("/")[0]
    folder = folder_of(header)
    if own not in FOLDERS or folder is None or folder == own:
        return False
    if own == "clients" and folder == "client":
        return False
    return folder not in FOLDERS[own]


def crosses_rooms(file: str, header: str) -> bool:
    folder, own, *_ = Path(file).with_suffix(".h").parts + ("",)
    if folder not in ROOMS or not header.startswith(f"{folder}/"):
        return False
    room = header.split("/")[1]
    rooms = ROOMS[folder]
    return own in rooms and room != own and room not in rooms[own]


def crosses_benches(file: str, header: str) -> bool:
    own = file.split("/")[1] if file.startswith("bench/") else None
    if own not in BENCHES or not header.startswith(("bench/", "service/")):
        return False
    folder = "/".join(header.split("/")[:2])
    return folder != f"bench/{own}" and folder not in BENCHES[own]


def is_foreign(file: str, header: str) -> bool:
    pattern = FOREIGN.get(file.split("/")[0])
    own_folder = folder_of(header) is not None
    return bool(pattern and not own_folder and re.match(pattern, header))


def without_row(file: str) -> str | None:
    """Returns the folder of a file if no table has a row for it, else None."""
    folder, *below = Path(file).parent.parts or (".",)
    if folder in FREE:
        return None
    if folder not in FOLDERS:
        return folder
    rooms = (ROOMS | {"bench": BENCHES}).get(folder)
    if rooms is None or not below or below[0] in rooms:
        return None
    return f"{folder}/{below[0]}"


def violations(root: Path) -> list[str]:
    files = subprocess.run(
        ["git", "ls-files", "*.h", "*.cc", "*.cu", "*.cuh"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    unknown = {without_row(file) for file in files} - {None}
    checks = (crosses_folders, crosses_rooms, crosses_benches, is_foreign)
    return [
        f"{folder} has no row in tools/check_layers.py" for folder in sorted(unknown)
    ] + [
        f"{file} includes {header}"
        for file in files
        for header in INCLUDE.findall((root / file).read_text())
        if any(check(file, header) for check in checks)
    ]


if __name__ == "__main__":
    found = violations(Path(sys.argv[1]) if sys.argv[1:] else THIS_CHECKOUT)
    print("\n".join(found) or "layers: ok")
    sys.exit(bool(found))
