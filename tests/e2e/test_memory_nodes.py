"""The block memory lies on the NUMA nodes that --memory-nodes says."""

from pathlib import Path

import pytest
from blocks import BLOCKS_ONLY
from pando_kv import Client
from pandod_process import refused_start

NODES = Path("/sys/devices/system/node/online").read_text().strip()


def policy_of(memory) -> str:
    """Returns the policy that Linux states for this process's mapping."""
    begin = memory.bytes.ctypes.data
    for line in Path("/proc/self/numa_maps").read_text().splitlines():
        address, policy, *_ = line.split()
        if int(address, 16) == begin:
            return policy
    raise AssertionError("the memory is not mapped")


def test_pages_go_to_all_nodes_in_turn(start_pandod):
    pandod = start_pandod(**BLOCKS_ONLY)
    policy = "default" if NODES == "0" else f"interleave:{NODES}"
    with Client(pandod.address) as client:
        assert policy_of(client.attach_memory()) == policy


def test_pages_go_to_the_node_of_the_option(start_pandod):
    pandod = start_pandod(memory_nodes="0", **BLOCKS_ONLY)
    with Client(pandod.address) as client:
        assert policy_of(client.attach_memory()) == "prefer:0"


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ("1023", "NUMA node 1023 cannot be used; usable are 0"),
        ("1-0", "'1-0' is no list of NUMA nodes such as 0-1,4"),
        ("none", "'none' is no list of NUMA nodes such as 0-1,4"),
    ],
)
def test_nodes_that_are_not_there_are_refused(tmp_path, nodes, message):
    refused = refused_start(tmp_path, "--memory=16MiB", f"--memory-nodes={nodes}")
    assert message in refused
