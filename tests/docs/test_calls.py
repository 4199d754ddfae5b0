"""docs/calls.md: each of its programs runs, prints what it says, makes every call."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from eventually import eventually
from installed import install_into, pkg_config
from metrics_page import MetricsPage
from pando_kv._proto.pando.v1 import (
    admin_pb2,
    events_pb2,
    pool_pb2,
    prefix_cache_pb2,
    session_pb2,
)
from pandod_process import REPOSITORY, binary

TEXT = (REPOSITORY / "docs" / "calls.md").read_text()
ADDRESS = "unix:/run/pando/pando.sock"
# What a line prints, perhaps after the name of the call.
PRINTED = re.compile(r"[^\s#/].*?[ ;)](?:#|//) (?:Admin\.\w+: )?(.*)$", re.MULTILINE)

CPP_PROGRAM = """
#include <grpcpp/grpcpp.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <span>
#include <variant>
#include <vector>

#include "pando/client.h"
#include "pando/v1/admin.grpc.pb.h"

int main() {
%s
}
"""


def program(title: str) -> str:
    """The pieces below one of the titles."""
    (section,) = re.findall(rf"^## {re.escape(title)}$(.*?)(?=^## |\Z)", TEXT, re.M | re.S)
    return "\n".join(re.findall(r"^```(?:python|cpp)\n(.*?)^```$", section, re.M | re.S))


def run(command: list[object], source: str, address: str) -> None:
    """Compares what it prints, word by word, with what the comments say."""
    assert ADDRESS in source
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == " ".join(PRINTED.findall(source)).split()


def methods() -> set[tuple[str, str]]:
    modules = [admin_pb2, events_pb2, pool_pb2, prefix_cache_pb2, session_pb2]
    return {
        (service.full_name, method.name)
        for module in modules
        for service in module.DESCRIPTOR.services_by_name.values()
        for method in service.methods
    }


def called(http: str) -> set[tuple[str, str]]:
    return {
        (series.labels["grpc_service"], series.labels["grpc_method"])
        for series in MetricsPage(http).series
        if series.name == "grpc_server_handled_total" and series.value > 0
    }


def expect_every_method_called(http: str) -> None:
    eventually(lambda: methods() <= called(http))


@pytest.mark.parametrize("title", ["Python", "By hand"])
def test_python(title, pandod, http, tmp_path):
    source = program(title)
    script = tmp_path / "calls.py"
    script.write_text(source.replace(ADDRESS, pandod.address))
    run([sys.executable, script], source, pandod.address)
    expect_every_method_called(http)


def test_cpp(pandod, http, tmp_path):
    source = program("C++")
    file = tmp_path / "calls.cc"
    file.write_text(CPP_PROGRAM % source.replace(ADDRESS, pandod.address))
    generated = binary().parents[1] / "proto" / "gen"
    flags = pkg_config(install_into(tmp_path / "prefix"), "--cflags", "--libs")
    build = ["g++", "-std=c++20", f"-I{generated}", file, *flags]
    subprocess.run([*build, "-o", tmp_path / "calls"], check=True)
    run([tmp_path / "calls"], source, pandod.address)
    expect_every_method_called(http)
