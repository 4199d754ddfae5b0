"""The systemd units, as far as tests can check them without running them."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from pandod_process import REPOSITORY, binary

FOLDER = REPOSITORY / "deploy" / "systemd"
UNIT = (FOLDER / "pandod.service").read_text()
MOVER_UNIT = (FOLDER / "pando-mover@.service").read_text()
# systemd-analyze rates exposure up to 100; a service without any protection gets 96.
MOST_EXPOSURE = 20


def analyze(*arguments: object) -> subprocess.CompletedProcess[str]:
    tool = shutil.which("systemd-analyze")
    if tool is None:
        pytest.skip("there is no systemd-analyze")
    return subprocess.run(
        [tool, *map(str, arguments)], capture_output=True, text=True, timeout=60
    )


def seconds_of(name: str) -> int:
    return int(re.search(rf"^{name}=(\d+)$", UNIT, re.MULTILINE).group(1))


@pytest.fixture(params=["pandod.service", "pando-mover@0.service"])
def unit(tmp_path: Path, request) -> Path:
    """Writes the units for the tested programs; returns the path of one of them."""
    for name, text in (("pandod.service", UNIT), ("pando-mover@0.service", MOVER_UNIT)):
        own = text.replace("/usr/bin", str(binary().parent))
        (tmp_path / name).write_text(re.sub("Documentation=.*\n", "", own))
    return tmp_path / request.param


def test_systemd_finds_no_fault(unit):
    checked = analyze("verify", unit)
    assert checked.returncode == 0, checked.stderr
    # systemd must not warn of this unit either. Warnings about the machine's other
    # units do not matter.
    assert unit.name not in checked.stderr, checked.stderr


def test_it_is_well_protected(unit):
    rated = analyze(
        "security", "--no-pager", "--offline=yes", f"--threshold={MOST_EXPOSURE}", unit
    )
    assert rated.returncode == 0, rated.stdout + rated.stderr


def calls_of(group: str) -> set[str]:
    """Returns the system calls in a group of systemd's."""
    lines = analyze("syscall-filter", group).stdout.split("\n")[1:]
    names = {line.strip() for line in lines if line.strip() and "#" not in line}
    groups = {name for name in names if name.startswith("@")}
    return (names - groups).union(*map(calls_of, groups))


def test_it_may_give_its_sockets_to_a_group():
    allowed = set()
    for removed, group in re.findall(r"^SystemCallFilter=(~?)(@.*)$", UNIT, re.M):
        allowed = allowed - calls_of(group) if removed else allowed | calls_of(group)
    assert {"chown", "fchownat"} <= allowed
    assert not {"chroot", "setuid"} & allowed


def test_bad_options_are_not_tried_again():
    bad = subprocess.run([binary(), "--no-such-option"], capture_output=True)
    assert f"\nRestartPreventExitStatus={bad.returncode}\n" in UNIT


def test_it_is_killed_only_after_its_own_time_to_drain():
    printed = subprocess.check_output([binary(), "--print-config"], text=True)
    drain_timeout = yaml.safe_load(printed)["drain-timeout"]
    assert seconds_of("TimeoutStopSec") > int(drain_timeout.removesuffix("s"))


def test_its_sockets_are_in_its_own_folder():
    printed = subprocess.check_output([binary(), "--print-config"], text=True)
    assert Path(yaml.safe_load(printed)["socket"]).parent == Path("/run/pando")
    assert "\nRuntimeDirectory=pando\n" in UNIT


def test_its_user_is_made():
    user = re.search(r"^User=(.*)$", UNIT, re.MULTILINE).group(1)
    assert f"\nu {user} " in (FOLDER / "pando.sysusers").read_text()


def test_a_mover_is_of_the_user_that_pandod_lets_in_and_sees_gpus():
    (user,) = re.findall(r"^User=.*$", UNIT, re.MULTILINE)
    assert f"\n{user}\n" in MOVER_UNIT
    assert "PrivateDevices=yes" not in MOVER_UNIT
    assert "\nDevicePolicy=closed\nDeviceAllow=char-nvidia* rw\n" in MOVER_UNIT


def test_a_mover_is_asked_for_the_gpu_of_its_instance():
    (command,) = re.findall(r"^ExecStart=(.*)$", MOVER_UNIT, re.MULTILINE)
    (gpu,) = re.findall(r"--device (\S+)$", command)
    # %i leaves a UUID with dashes as it is; %I would make a path of it.
    assert gpu == "%i"
    # An enabled mover starts and stops with pandod.
    for line in ("PartOf", "After", "WantedBy"):
        assert f"\n{line}=pandod.service\n" in MOVER_UNIT


def test_bad_options_of_a_mover_are_not_tried_again():
    mover = binary().with_name("pando-mover")
    bad = subprocess.run([mover, "--no-such-option"], capture_output=True)
    assert f"\nRestartPreventExitStatus={bad.returncode}\n" in MOVER_UNIT
