"""The package as pip installs it into an empty environment, without the checkout.

All other tests run on the newest versions of the packages that it needs.
"""

import os
import re
import subprocess
import sys
import venv
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pando_kv
import pytest
from pandod_process import REPOSITORY

PACKAGE = REPOSITORY / "clients" / "python"
WORKER = Path(__file__).with_name("typed_worker.py")
# This is the oldest protobuf that vLLM allows; SGLang also uses 6.33.
ENGINES_PROTOBUF = "protobuf==6.33.5"


# The program prints the transport of a client, and why the client has no lane.
TRANSPORT = """
import sys
from pando_kv import Client
with Client(sys.argv[1]) as client:
    print(client.transport, client.why_no_lane)
"""


def pip(python: Path | str, *arguments: object, **environment: str) -> None:
    command = [python, "-m", "pip", "--disable-pip-version-check", *arguments]
    done = subprocess.run(
        list(map(str, command)),
        capture_output=True,
        text=True,
        env=os.environ | environment,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def build_wheel(folder: Path, **environment: str) -> Path:
    """Builds the wheel as `make package` does."""
    pip(
        sys.executable, "wheel", "-q", "--no-deps", "-w", folder, PACKAGE, **environment
    )
    (built,) = folder.iterdir()
    return built


def native_modules(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    return [n for n in names if re.fullmatch(r"pando_kv/_native\..*\.so", n)]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def metadata(wheel) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [n for n in archive.namelist() if n.endswith(".dist-info/METADATA")]
        return Parser().parsestr(archive.read(name).decode())


def lowest_versions(metadata: Message) -> list[str]:
    needed = [need for need in metadata.get_all("Requires-Dist") if ";" not in need]
    return [re.sub(r"([\w-]+).*>=([\d.]+).*", r"\1==\2", need) for need in needed]


@pytest.fixture(scope="module")
def environment(wheel, metadata, tmp_path_factory) -> Path:
    """Returns a Python with the lowest versions that the package allows."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    pip(python, "install", "-q", wheel, *lowest_versions(metadata))
    return python


def transport(python: Path, address: str) -> str:
    return subprocess.check_output(
        [python, "-I", "-c", TRANSPORT, address], text=True
    ).strip()


def run_worker(python: Path, address: str) -> None:
    """Runs the worker without this checkout on its path, with warnings as errors."""
    subprocess.run([python, "-I", "-W", "error", WORKER, address], check=True)


def mypy(*arguments: object, folder: Path) -> None:
    command = [sys.executable, "-m", "mypy", *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_its_metadata_say_what_it_is(metadata):
    assert metadata["Name"] == "pando-kv"
    assert metadata["Version"] == pando_kv.__version__
    assert metadata["Requires-Python"] == ">=3.10"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload() == (PACKAGE / "README.md").read_text()


def test_a_worker_runs_on_the_lowest_versions_of_what_it_needs(environment, pandod):
    run_worker(environment, pandod.address)


def test_it_has_the_native_module_and_calls_on_a_lane(wheel, environment, pandod):
    assert len(native_modules(wheel)) == 1
    assert transport(environment, pandod.address) == "lane"


def test_where_there_is_no_compiler_it_is_built_without_and_says_so(
    metadata, tmp_path, pandod
):
    compiler = {"CC": "/bin/false", "CXX": "/bin/false"}
    plain = build_wheel(tmp_path / "wheel", **compiler)
    assert plain.name.endswith("-py3-none-any.whl")
    assert native_modules(plain) == []
    venv.create(tmp_path / "environment", with_pip=True)
    python = tmp_path / "environment" / "bin" / "python"
    pip(python, "install", "-q", plain, *lowest_versions(metadata))
    told = "grpc pando_kv is not built with its native module"
    assert transport(python, pandod.address).startswith(told)
    run_worker(python, pandod.address)


def test_its_types_are_seen_where_it_is_installed(environment, tmp_path):
    mypy("--strict", "--python-executable", environment, WORKER, folder=tmp_path)


def test_a_worker_runs_on_the_protobuf_of_vllm_and_sglang(environment, wheel, pandod):
    pip(environment, "install", "-q", wheel, ENGINES_PROTOBUF)
    pip(environment, "check")
    run_worker(environment, pandod.address)


def test_importing_what_is_for_engines_loads_none_of_them():
    """An engine imports its entry point in each process, so the import stays light."""
    program = (
        "import sys, pando_kv.sglang, pando_kv.vllm, pando_kv.minisgl\n"
        "print({'torch', 'sglang', 'vllm', 'minisgl'} & sys.modules.keys())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert done.stdout == "set()\n"


def test_its_own_code_has_no_type_errors(tmp_path):
    mypy(f"--cache-dir={tmp_path}", folder=PACKAGE)
