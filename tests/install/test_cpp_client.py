"""Projects that are built with the installed files alone, and then run."""

import subprocess
from pathlib import Path

import pytest
from installed import pkg_config
from pandod_process import REPOSITORY

EXAMPLE = REPOSITORY / "examples" / "cpp"
WORKER_SAYS = (
    "worker A: 1000 tokens, 0 from the cache\n"
    "worker B: 1000 tokens, 992 from the cache\n"
)


def output_of(*command: object) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def configure(source: Path, build: Path, prefix: Path) -> subprocess.CompletedProcess:
    command = ["cmake", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}"]
    command += ["-S", source, "-B", build]
    return subprocess.run(command, capture_output=True, text=True)


def test_a_project_finds_the_client_with_cmake(prefix, pandod, tmp_path):
    build = tmp_path / "build"
    configured = configure(EXAMPLE, build, prefix)
    assert configured.returncode == 0, configured.stderr
    output_of("cmake", "--build", build)
    assert output_of(build / "bin" / "example_worker", pandod.address) == WORKER_SAYS


# The programs need these libraries and the client does not.
OF_PROGRAMS = ("spdlog", "prometheus-cpp", "civetweb", "CLI11", "yaml-cpp", "GTest")
TREE = f"""cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES CXX)
add_subdirectory({REPOSITORY} pando)
add_executable(worker {EXAMPLE}/worker.cc)
target_link_libraries(worker PRIVATE pando::client)
"""


def test_a_project_builds_the_client_alone_in_its_own_tree(pandod, tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(TREE)
    build = tmp_path / "build"
    options = [f"CMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in OF_PROGRAMS]
    options += ["PANDO_D3=NOTFOUND", "PANDO_CHART=NOTFOUND", "PANDO_CUDA=OFF"]
    options += ["CMAKE_UNITY_BUILD=ON", "CMAKE_UNITY_BUILD_BATCH_SIZE=0"]
    command = ["cmake", "-G", "Ninja", "-S", tmp_path, "-B", build]
    output_of(*command, *(f"-D{option}" for option in options))
    assert "-Werror" not in (build / "build.ninja").read_text()
    output_of("cmake", "--build", build, "--target", "worker")
    assert output_of(build / "worker", pandod.address) == WORKER_SAYS


def test_a_project_finds_the_client_with_pkg_config(prefix, pandod, tmp_path):
    program = tmp_path / "worker"
    flags = pkg_config(prefix, "--cflags", "--libs")
    output_of("g++", "-std=c++20", EXAMPLE / "worker.cc", *flags, "-o", program)
    assert output_of(program, pandod.address) == WORKER_SAYS


def test_the_headers_bring_neither_grpc_nor_protobuf_along(prefix, tmp_path):
    source = tmp_path / "every_header.cc"
    headers = sorted((prefix / "include" / "pando").iterdir())
    source.write_text("".join(f'#include "pando/{h.name}"\n' for h in headers))
    flags = pkg_config(prefix, "--cflags")
    included = output_of("g++", "-std=c++20", "-M", source, *flags)
    assert "/include/pando/client.h" in included
    assert "/grpc" not in included
    assert "/google/protobuf" not in included


@pytest.mark.parametrize(("version", "found"), [("0.1", True), ("1.0", False)])
def test_a_project_may_say_which_version_it_needs(prefix, tmp_path, version, found):
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\n"
        "project(consumer LANGUAGES CXX)\n"
        f"find_package(pando {version} CONFIG REQUIRED)\n"
    )
    configured = configure(tmp_path, tmp_path / "build", prefix)
    assert (configured.returncode == 0) is found, configured.stderr
