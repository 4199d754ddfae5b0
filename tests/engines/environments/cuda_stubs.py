"""Makes stub libraries in place of the CUDA libraries that torch is linked with.

torch from the package registry is built for CUDA. It also runs on a CPU, but the
loader wants every library that it names: 2.5 GB of wheels of which nothing is
called. A stub has the name, and every symbol (with its version) that torch takes
from that library; each function returns 999, CUDA's "unknown error", so that
torch finds no GPU.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

CUDA_LIBRARY = re.compile(r"lib(cu|nv|nccl)[\w-]*\.so")
CUDA_SYMBOL = re.compile(r"(cu|nv|nccl|__cuda|__nv)")
UNKNOWN_ERROR = 999


@dataclass
class Imports:
    """What a set of libraries takes from the CUDA libraries."""

    libraries: set[str] = field(default_factory=set)
    # By library and symbol version.
    versioned: dict[str, dict[str, set[str]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(set))
    )
    # Symbols of which the library is not written down.
    plain: set[str] = field(default_factory=set)


def make_stubs(folder: Path) -> list[str]:
    """Writes the CUDA libraries that the libraries in `folder` need into it.

    Returns their names. Needs readelf and gcc.
    """
    imports = Imports()
    for library in sorted(folder.glob("*.so*")):
        _read_imports(library, imports)
    names = sorted(name for name in imports.libraries if not (folder / name).exists())
    for name in names:
        # The loader looks for a plain symbol in all libraries: one has them all.
        plain = imports.plain if name.startswith("libcudart.") else set()
        _compile_stub(folder / name, imports.versioned[name], plain)
    return names


def _read_imports(library: Path, imports: Imports) -> None:
    dynamic = _readelf("-d", library)
    imports.libraries |= {
        name
        for name in re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic)
        if CUDA_LIBRARY.match(name)
    }
    library_of_version = {}
    needed_file = ""
    for line in _readelf("-V", library).splitlines():
        if found := re.search(r"File: (\S+)", line):
            needed_file = found[1]
        elif needed_file and (found := re.search(r"Name: (\S+)", line)):
            library_of_version[found[1]] = needed_file
    for line in _readelf("--dyn-syms", library).splitlines():
        words = line.split()
        if len(words) < 8 or words[6] != "UND":
            continue
        symbol, _, version = words[7].partition("@")
        owner = library_of_version.get(version.lstrip("@"), "")
        if CUDA_LIBRARY.match(owner):
            imports.versioned[owner][version.lstrip("@")].add(symbol)
        elif not version and CUDA_SYMBOL.match(symbol):
            imports.plain.add(symbol)


def _readelf(what: str, library: Path) -> str:
    return subprocess.run(
        ["readelf", "-W", what, library], capture_output=True, text=True, check=True
    ).stdout


def _compile_stub(path: Path, versioned: dict[str, set[str]], plain: set[str]) -> None:
    symbols = sorted(plain.union(*versioned.values()))
    marker = "pando_stub_" + re.sub(r"\W", "_", path.name)
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch, "stub.c")
        source.write_text(
            "".join(
                f"int {symbol}(void) {{ return {UNKNOWN_ERROR}; }}\n"
                for symbol in [*symbols, marker]
            )
        )
        command = ["gcc", "-shared", "-fPIC", "-w", "-fno-builtin"]
        if versioned:
            script = Path(scratch, "stub.map")
            script.write_text(
                "".join(
                    f"{version} {{ global: {' '.join(f'{s};' for s in sorted(names))} }};\n"
                    for version, names in versioned.items()
                )
            )
            command.append(f"-Wl,--version-script,{script}")
        command += [f"-Wl,-soname,{path.name}", "-o", str(path), str(source)]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    print("\n".join(make_stubs(Path(sys.argv[1]))))
