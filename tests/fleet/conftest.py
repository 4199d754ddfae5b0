"""The environments of the routers, and machines and routers for a test."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from pinned_environment import EnvironmentMissing, pinned_environment, site_packages

LOCKS = Path(__file__).parent / "environments"
_missing: list[str] = []


def _environment(name: str) -> Path | None:
    try:
        return pinned_environment("fleet", LOCKS / f"{name}.lock")
    except (EnvironmentMissing, OSError) as error:
        _missing.append(str(error))
        return None


# Every subscriber of these tests imports this environment's packages.
_subscriber = _environment("subscriber")
if _subscriber is None:
    collect_ignore_glob = ["test_*.py"]
else:
    sys.path.append(str(site_packages(_subscriber)))


def pytest_sessionfinish(session: pytest.Session) -> None:
    if _subscriber is None and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        session.exitstatus = pytest.ExitCode.OK


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for why in _missing:
        terminalreporter.write_line(
            f"NOT TESTED, for want of packages: {why}", red=True
        )


def _required(name: str) -> Path:
    environment = _environment(name)
    if environment is None:
        pytest.skip(f"the packages of {name}.lock cannot be had")
    return environment


@pytest.fixture(scope="session")
def dynamo() -> Path:
    return _required("dynamo")


@pytest.fixture(scope="session")
def vllm_router() -> Path:
    return _required("vllm-router")


@pytest.fixture
def start_machine(tmp_path: Path) -> Iterator[Callable]:
    """Returns a function that starts a machine with these options of pandod.

    Each machine must stop in order at the end of the test.
    """
    from fleet.machine import Machine

    with ExitStack() as stack:
        count = 0

        def start(**options: object) -> Machine:
            nonlocal count
            count += 1
            folder = tmp_path / f"machine{count}"
            folder.mkdir()
            return stack.enter_context(Machine(folder, count, **options))

        yield start
