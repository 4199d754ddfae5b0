"""The parts of bench/gpu/machine.py that run without a GPU."""

import subprocess
import sys

import cuda_stand_in
from pandod_process import REPOSITORY, binary, clean_environment


def run(environment, *arguments):
    ran = subprocess.run(
        [sys.executable, REPOSITORY / "bench/gpu/machine.py"]
        + [f"--build={binary().parents[1]}", "--only=copies", *arguments],
        env=clean_environment() | environment,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_blocks_of_each_size_are_copied_to_each_gpu_and_back():
    said = run(
        cuda_stand_in.environment(devices=2),
        *("--memory=64MiB", f"--request-bytes={8 << 20}"),
    )
    for device in range(2):
        for blocks in ("512 blocks of 16 KiB", "4 blocks of 2048 KiB"):
            for way in ("to", "from"):
                assert f"GPU {device}: {blocks} {way} it" in said


def test_a_machine_without_a_driver_is_told_so(tmp_path):
    said = run({"LD_LIBRARY_PATH": str(tmp_path)})
    assert "skipped: copies: no driver for CUDA" in said
