"""Copies of many pieces at once, within host memory or between it and a GPU."""

import json
import subprocess
import sys
from pathlib import Path

import cuda_stand_in
import numpy as np
import pytest
from pando_kv import _native
from pandod_process import clean_environment

SCRIPT = Path(cuda_stand_in.__file__).with_name("cuda_copies.py")


def run(environment):
    return subprocess.run(
        [sys.executable, SCRIPT],
        env=clean_environment() | environment,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("missing", ["", "cuMemcpyBatchAsync"])
def test_pieces_reach_a_gpu_and_come_back(missing):
    """A driver without cuMemcpyBatchAsync gets one call for each piece."""
    settings = {"missing": missing} if missing else {}
    ran = run(cuda_stand_in.environment(devices=1, **settings))
    assert ran.returncode == 0, ran.stderr
    answer = json.loads(ran.stdout)
    refusal = answer.pop("refusal")
    assert "invalid argument (1)" in refusal
    assert answer == {
        "to_device": True,
        "to_host": True,
        "others": 64,
        "is_batched": not missing,
    }


def test_a_driver_that_is_too_old_is_refused_in_a_sentence():
    ran = run(cuda_stand_in.too_old())
    assert "the CUDA driver has no " in ran.stderr
    assert "a newer one is needed" in ran.stderr


def test_pieces_of_host_memory():
    random = np.random.default_rng(1)
    source = random.integers(0, 256, 1 << 16, np.uint8)
    target = np.zeros_like(source)
    sizes = random.integers(1, 512, 100).astype(np.uint64)
    ends = np.cumsum(sizes)
    starts = ends - sizes
    _native.copy(
        starts + np.uint64(target.ctypes.data),
        starts + np.uint64(source.ctypes.data),
        sizes,
    )
    end = int(ends[-1])
    assert (target[:end] == source[:end]).all()
    assert not target[end:].any()


def test_lists_of_other_lengths_are_refused():
    one, two = np.zeros(1, np.uint64), np.zeros(2, np.uint64)
    with pytest.raises(ValueError, match="equally many"):
        _native.copy(one, two, two)
