"""The programs of docs/calls.md, which must print what it says and make every call."""

import subprocess
import sys

import pytest
from doc_programs import DocProgram
from eventually import eventually
from installed import install_into, pkg_config
from metrics_page import MetricsPage
from pando_kv._proto.pando.v1 import (
    admin_pb2,
    blocks_pb2,
    events_pb2,
    pool_pb2,
    prefix_cache_pb2,
    session_pb2,
)
from pandod_process import REPOSITORY, binary

CALLS = REPOSITORY / "docs" / "calls.md"
CPP_PROGRAM = """
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "pando/client.h"
#include "pando/operator.h"

int main() {
%s
}
"""


def methods() -> set[tuple[str, str]]:
    modules = [
        admin_pb2,
        blocks_pb2,
        events_pb2,
        pool_pb2,
        prefix_cache_pb2,
        session_pb2,
    ]
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
    program = DocProgram(CALLS, title, "python")
    script = tmp_path / "calls.py"
    script.write_text(program.source(pandod.address))
    program.check(sys.executable, script)
    expect_every_method_called(http)


# With this module Python's last steps begin while gRPC's thread half-closes the stream:
# the worst moment for a program that does not wait for the stream's end.
SLOW_HALF_CLOSE = """
import atexit, threading, time
from grpc._cython import cygrpc

begun, half_close = threading.Event(), cygrpc.SendCloseFromClientOperation

def slow_half_close(flags):
    begun.set()
    time.sleep(1)
    return half_close(flags)

cygrpc.SendCloseFromClientOperation = slow_half_close
atexit.register(begun.wait, 10)
"""


def test_python_by_hand_ends_although_grpc_is_slow(pandod, tmp_path):
    program = DocProgram(CALLS, "By hand", "python")
    script = tmp_path / "calls.py"
    end = "requests.put(None)"
    source = program.source(pandod.address)
    assert source.count(end) == 1
    script.write_text(source.replace(end, f"import slow_half_close\n{end}"))
    # The code is in its own module, so it keeps none of the program's variables alive.
    (tmp_path / "slow_half_close.py").write_text(SLOW_HALF_CLOSE)
    program.check(sys.executable, script)


def test_cpp(pandod, http, tmp_path):
    program = DocProgram(CALLS, "C++", "cpp")
    source, built = tmp_path / "calls.cc", tmp_path / "calls"
    source.write_text(CPP_PROGRAM % program.source(pandod.address))
    generated = binary().parents[1] / "proto" / "gen"
    flags = pkg_config(install_into(tmp_path / "prefix"), "--cflags", "--libs")
    compiler = ["g++", "-std=c++20", f"-I{generated}", source, *flags, "-o", built]
    subprocess.run(compiler, check=True)
    program.check(built)
    expect_every_method_called(http)
