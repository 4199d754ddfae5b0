"""Makes the wheels pando_kv and pando_server, which need no compiler to install.

usage: wheels.py --programs FOLDER --to FOLDER
FOLDER has pandod, pandoctl, pando-keeper and pando-mover. Both wheels run on any Linux with glibc
2.34 or later: auditwheel puts the libraries that they need into them, and checks what
they want of the system.
"""

import argparse
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from elftools.elf.elffile import ELFFile

REPOSITORY = Path(__file__).resolve().parent.parent
PROGRAMS = ("pandod", "pandoctl", "pando-keeper", "pando-mover")
PLATFORM = "manylinux_2_34_x86_64"
# GCC 12 gave the symbol condition_variable::wait of libstdc++ a second version, which
# systems with glibc 2.34 lack. All systems have the same function under the old
# version.
NEW_VERSION, OLD_VERSION = b"GLIBCXX_3.4.30", b"GLIBCXX_3.4.11"
RENAMED_SYMBOL = "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE"
# The packages whose code is in the programs themselves, from headers and archives.
LINKED_IN = (
    "cppzmq-dev",
    "libcli11-dev",
    "libmsgpack-cxx-dev",
    "nlohmann-json3-dev",
    "prometheus-cpp-dev",
)
COMMON_LICENSES = Path("/usr/share/common-licenses")
BIN = Path(sys.executable).parent


def run(*command: object, **environment: str) -> str:
    """Runs a command and returns its output. Exits with that output if the command
    fails."""
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [*map(str, command)],
        env=os.environ | {"PATH": path} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


def build(project: Path, folder: Path, *settings: str) -> Path:
    options = [f"--config-settings={setting}" for setting in settings]
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, project,
        *options)  # fmt: skip
    (wheel,) = folder.glob("*.whl")
    return wheel


def repair(wheel: Path, folder: Path, libraries: Path) -> Path:
    """Returns the wheel with its libraries inside; `libraries` is searched first for
    them."""
    run(sys.executable, "-m", "auditwheel", "repair", "--plat", PLATFORM,
        "-w", folder, wheel, LD_LIBRARY_PATH=str(libraries))  # fmt: skip
    (repaired,) = folder.glob("*.whl")
    return repaired


def stripped(programs: Path, folder: Path) -> Path:
    folder.mkdir()
    for program in PROGRAMS:
        run("strip", "-o", folder / program, programs / program)
        if wants_new_version(folder / program):
            want_old_version(folder / program)
    return folder


def needed_libraries(programs: Iterable[Path]) -> set[Path]:
    found = set()
    for program in programs:
        found |= set(re.findall(r"=> (/\S+)", run("ldd", program)))
    return {Path(path) for path in found}


def wants_new_version(file: Path) -> bool:
    return NEW_VERSION.decode() in run("readelf", "--version-info", file)


def want_old_version(path: Path) -> None:
    """Makes a file ask for the old version of condition_variable::wait. Exits if the
    file asks for other symbols of the new version."""
    symbols = run("readelf", "--wide", "--dyn-syms", path)
    new = re.findall(rf"(\S+)@{NEW_VERSION.decode()}", symbols)
    if set(new) != {RENAMED_SYMBOL}:
        sys.exit(f"{path} wants {new} of {NEW_VERSION.decode()}")
    with path.open("r+b") as file:
        elf = ELFFile(file)
        needs = elf.get_section_by_name(".gnu.version_r")
        strings = elf.get_section(needs["sh_link"]).data()
        # The name and the hash of a version lie as in Elf64_Vernaux.
        hashes = {name: gnu_version_hash(name) for name in (NEW_VERSION, OLD_VERSION)}
        old_name = strings.index(b"\0" + OLD_VERSION + b"\0") + 1
        new_name = strings.index(b"\0" + NEW_VERSION + b"\0") + 1
        head = struct.Struct("<IHH")
        data = needs.data()
        for at in range(0, len(data) - 15, 4):
            wanted, flags, other = head.unpack_from(data, at)
            (name,) = struct.unpack_from("<I", data, at + head.size)
            if (wanted, name) == (hashes[NEW_VERSION], new_name):
                file.seek(needs["sh_offset"] + at)
                file.write(head.pack(hashes[OLD_VERSION], flags, other))
                file.write(struct.pack("<I", old_name))


def gnu_version_hash(name: bytes) -> int:
    """Returns the hash of a name by System V's ABI."""
    value = 0
    for byte in name:
        value = (value << 4) + byte
        value = (value ^ (value & 0xF0000000) >> 24) & 0x0FFFFFFF
    return value


def own_libraries(programs: Path, folder: Path) -> Path:
    """Returns a folder with the libraries that cannot go into a wheel as the system has
    them, changed so that they can."""
    folder.mkdir()
    for path in needed_libraries(programs.iterdir()):
        copy = folder / path.name
        # libstdc++ defines these symbols, and is not bundled; libzmq comes from pyzmq.
        if path.name.startswith(("libstdc++", "libzmq")):
            continue
        if wants_new_version(path):
            shutil.copy(path, copy)
            want_old_version(copy)
    take_zmq(folder)
    return folder


def take_zmq(folder: Path) -> None:
    """Copies libzmq from pyzmq, because Debian's libzmq also needs Kerberos, PGM and
    NORM, none of which Pando uses."""
    (libraries,) = Path(sys.prefix).glob("lib/python*/site-packages/pyzmq.libs")
    for path in libraries.iterdir():
        shutil.copy(path, folder)
    (zmq,) = folder.glob("libzmq-*")
    renamed = zmq.rename(folder / "libzmq.so.5")
    run("patchelf", "--set-soname", "libzmq.so.5", "--set-rpath", "$ORIGIN", renamed)


def licenses_of(libraries: Iterable[str], folder: Path) -> None:
    """Copies the licences of bundled libraries into the folder, and the texts to which
    these licences refer."""
    shutil.copy(
        REPOSITORY / "deploy" / "debian" / "copyright", folder / "pando.copyright"
    )
    owners = set(LINKED_IN)
    for library in libraries:
        # auditwheel has put a hash into the file's name.
        name = re.sub(r"-[0-9a-f]{8}(?=\.)", "", library)
        if name.startswith(("libzmq", "libsodium")):
            continue
        owners.add(run("dpkg-query", "-S", f"*/{name}").split(":", 1)[0])
    for owner in owners:
        shutil.copy(f"/usr/share/doc/{owner}/copyright", folder / f"{owner}.copyright")
    (zmq,) = Path(sys.prefix).glob(
        "lib/python*/site-packages/pyzmq-*.dist-info/licenses"
    )
    for name in ("zeromq", "libsodium"):
        (text,) = zmq.rglob(f"LICENSE.{name}.txt")
        shutil.copy(text, folder / f"{name}.copyright")
    for text in list(folder.glob("*.copyright")):
        for name in re.findall(
            rf"{COMMON_LICENSES}/([\w.-]*\w)", text.read_text(errors="replace")
        ):
            if (COMMON_LICENSES / name).exists():
                shutil.copy(COMMON_LICENSES / name, folder / name)


def add_licenses(wheel: Path, folder: Path) -> None:
    with tempfile.TemporaryDirectory() as unpacked:
        run(sys.executable, "-m", "wheel", "unpack", "-d", unpacked, wheel)
        (root,) = Path(unpacked).iterdir()
        (metadata,) = root.glob("*.dist-info")
        libraries = [path.name for path in root.glob("*.libs/*")]
        licenses_of(libraries, metadata / "licenses")
        run(sys.executable, "-m", "wheel", "pack", "-d", folder, root)


def make_client(scratch: Path, folder: Path) -> None:
    (scratch / "none").mkdir()
    wheel = build(REPOSITORY / "clients" / "python", scratch / "client")
    shutil.copy(repair(wheel, scratch / "repaired-client", scratch / "none"), folder)


def make_server(programs: Path, scratch: Path, folder: Path) -> None:
    small = stripped(programs, scratch / "programs")
    wheel = build(
        REPOSITORY / "deploy" / "wheel",
        scratch / "server",
        f"cmake.define.PANDO_PROGRAMS={small}",
    )
    libraries = own_libraries(small, scratch / "libraries")
    add_licenses(repair(wheel, scratch / "repaired-server", libraries), folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=Path, required=True)
    parser.add_argument("--to", type=Path, required=True)
    options = parser.parse_args()
    options.to.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        make_client(Path(scratch), options.to)
        make_server(options.programs.resolve(), Path(scratch), options.to)


if __name__ == "__main__":
    main()
