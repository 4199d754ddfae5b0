"""pando-keeper alone, with programs that speak systemd's protocol."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from eventually import eventually
from kept_pandod import children_of, keeper
from prepared_process import after

# Each kept program below begins with this code.
PRELUDE = """
import os, signal, socket, sys

def tell(text, *fds):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.connect("\\0" + os.environ["NOTIFY_SOCKET"][1:])
        socket.send_fds(manager, [text.encode()], list(fds))

def kept():
    names = os.environ["LISTEN_FDNAMES"]
    assert int(os.environ["LISTEN_PID"]) == os.getpid()
    return dict(zip(names.split(":") if names else [], range(3, 3 + 64)))

def memory(text):
    fd = os.memfd_create("kept")
    os.write(fd, text)
    return fd

def say(*words):
    print(*words, flush=True)

def die():
    os.kill(os.getpid(), signal.SIGKILL)
"""

Started = subprocess.Popen[str]

# The first process of a container adopts orphans too (PR_SET_CHILD_SUBREAPER).
ADOPT_ORPHANS = "import ctypes; ctypes.CDLL(None).prctl(36, 1)"
IGNORE_SIGCHLD = "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)"


@pytest.fixture
def start() -> Iterator[Callable[..., Started]]:
    with contextlib.ExitStack() as stack:

        def start_one(program: str, *options: str, **environment: str) -> Started:
            command = [keeper(), *options, sys.executable, "-c", PRELUDE + program]
            process = subprocess.Popen(
                after(ADOPT_ORPHANS, *command),
                env=os.environ | environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            stack.enter_context(process)
            stack.callback(process.kill)
            return process

        yield start_one


def test_it_ends_with_the_code_of_its_program(start):
    assert start("sys.exit(7)").wait(30) == 7


def test_a_program_that_is_not_there_is_named(tmp_path):
    ended = subprocess.run(
        [keeper(), tmp_path / "absent"], capture_output=True, text=True, timeout=30
    )
    assert ended.returncode == 127
    assert str(tmp_path / "absent") in ended.stderr


def test_it_sees_its_program_end_where_it_was_started_with_sigchld_ignored():
    ended = subprocess.run(
        after(
            IGNORE_SIGCHLD, keeper(), sys.executable, "-c", "import sys; sys.exit(7)"
        ),
        timeout=30,
    )
    assert ended.returncode == 7


@pytest.mark.parametrize("given", [[], [""], ["--unknown"]])
def test_without_a_program_it_says_how_it_is_used(given):
    ended = subprocess.run([keeper(), *given], capture_output=True, text=True)
    assert ended.returncode == 2
    assert "Usage: pando-keeper" in ended.stderr


def test_what_a_program_gave_away_as_it_died_the_next_one_gets(start):
    process = start("""
if "one" not in kept():
    tell("FDSTORE=1\\nFDNAME=one", memory(b"first"))
    tell("FDSTORE=1\\nFDNAME=two", memory(b"second"))
    die()
say(sorted(kept()), *(os.pread(fd, 9, 0).decode() for _, fd in sorted(kept().items())))
""")
    assert process.stdout.readline() == "['one', 'two'] first second\n"
    assert process.wait(30) == 0


def test_what_is_removed_is_closed(start):
    process = start("""
if not kept():
    tell("FDSTORE=1\\nFDNAME=one", memory(b""))
    tell("FDSTORE=1\\nFDNAME=two", memory(b""))
    tell("FDSTOREREMOVE=1\\nFDNAME=one")
    die()
say(*kept())
""")
    assert process.stdout.readline() == "two\n"


@pytest.mark.parametrize("name", ["", "a:b", "a b", "x" * 256])
def test_a_name_that_cannot_be_handed_down_is_not_kept(start, name):
    process = start(f"""
if not kept():
    tell("FDSTORE=1\\nFDNAME={name}", memory(b""))
    tell("FDSTORE=1\\nFDNAME=fine", memory(b""))
    die()
say(*kept())
""")
    assert process.stdout.readline() == "fine\n"


def test_messages_of_other_processes_count_for_nothing(start):
    process = start("""
if not kept():
    if os.fork() == 0:
        tell("FDSTORE=1\\nFDNAME=foreign", memory(b""))
        os._exit(0)
    os.wait()
    tell("FDSTORE=1\\nFDNAME=own", memory(b""))
    die()
say(*kept())
""")
    assert process.stdout.readline() == "own\n"


@pytest.mark.parametrize(
    "sent",
    [signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2],
)
def test_signals_are_passed_on(start, sent):
    process = start(f"""
signal.pthread_sigmask(signal.SIG_BLOCK, [{sent.value}])
say("ready")
say(signal.sigwait([{sent.value}]))
sys.exit(3)
""")
    assert process.stdout.readline() == "ready\n"
    process.send_signal(sent)
    assert process.stdout.readline() == f"{sent.value}\n"
    assert process.wait(30) == 3


def test_one_that_is_killed_as_it_is_to_stop_is_not_started_again(start):
    process = start("""
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
say("ready")
signal.sigwait([signal.SIGTERM])
die()
""")
    assert process.stdout.readline() == "ready\n"
    process.terminate()
    assert process.wait(30) == 128 + signal.SIGKILL
    assert process.stdout.read() == ""


def test_its_death_is_that_of_its_program(start):
    process = start("say(os.getpid()); signal.pause()")
    child = int(process.stdout.readline())
    assert children_of(process.pid) == [child]
    process.kill()
    process.wait()
    eventually(lambda: not Path(f"/proc/{child}").exists())


def test_as_the_first_process_of_a_container_it_leaves_no_zombies(start):
    process = start("""
if os.fork() == 0:
    if os.fork() == 0:
        say(os.getpid())
        signal.pause()
    os._exit(0)
os.wait()
signal.pause()
""")
    orphan = int(process.stdout.readline())
    eventually(lambda: orphan in children_of(process.pid))
    os.kill(orphan, signal.SIGKILL)
    eventually(lambda: not Path(f"/proc/{orphan}").exists())


def test_what_is_not_for_the_store_goes_on_to_the_service_manager(start, tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(30)
        start(
            'tell("FDSTORE=1\\nFDNAME=one", memory(b"")); tell("READY=1")',
            NOTIFY_SOCKET=str(tmp_path / "notify"),
        )
        assert manager.recv(4096) == b"READY=1"


def test_one_that_dies_at_once_is_started_later_and_later():
    waits = []
    with subprocess.Popen(
        [keeper(), "sh", "-c", "kill -9 $$"], stderr=subprocess.PIPE, text=True
    ) as process:
        while len(waits) < 13:
            waits.append(int(process.stderr.readline().split(" in ")[1].split()[0]))
        process.kill()
    assert waits[:10] == [0] * 10
    assert waits[10:] == [100, 200, 300]


@pytest.mark.parametrize(
    ("asked", "options", "told"),
    [
        (None, [], "5000000"),
        (None, ["--watchdog", "0"], "None"),
        ("30000000", ["--watchdog", "2"], "2000000"),
        ("1000000", ["--watchdog", "2"], "1000000"),
        ("1000000", ["--watchdog", "0"], "1000000"),
    ],
)
def test_signs_of_life_are_asked_of_its_program(asked, options, told):
    """`asked` is what the service manager asks of the keeper."""
    program = (
        'import os; print(os.environ.get("WATCHDOG_USEC"), '
        'os.environ.get("WATCHDOG_PID") == str(os.getpid()))'
    )
    watched = f"WATCHDOG_PID=$$ WATCHDOG_USEC={asked}" if asked else ""
    ended = subprocess.run(
        ["sh", "-c", f'{watched} exec "$@"', "sh", keeper(), *options, sys.executable]
        + ["-c", program],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.stdout == f"{told} {told != 'None'}\n"


@pytest.mark.parametrize("sign", ["READY=1", "WATCHDOG=1"])
def test_a_program_that_hangs_is_killed_and_started_again(start, sign):
    hang = f'say(os.getpid()); tell("{sign}"); signal.pause()'
    started = start(hang, "--watchdog", "1")
    hung, again = (int(started.stdout.readline()) for _ in range(2))
    assert hung != again
    said = [started.stderr.readline() for _ in range(2)]
    assert f"process {hung} gave no sign of life for 1 seconds" in said[0]
    assert f"process {hung} was ended by signal 6" in said[1]


def test_the_one_after_one_that_hung_is_left_alone(start):
    second_lives = """
import time
if "one" not in kept():
    tell("FDSTORE=1\\nFDNAME=one", memory(b""))
    tell("READY=1")
    signal.pause()
for i in range(25):
    tell("WATCHDOG=1")
    time.sleep(0.1)
sys.exit(7)
"""
    assert start(second_lives, "--watchdog", "1").wait(30) == 7


def test_one_that_hangs_and_ignores_its_end_is_killed(start):
    hang = "signal.signal(signal.SIGABRT, signal.SIG_IGN); say(os.getpid())"
    started = start(f'{hang}; tell("READY=1"); signal.pause()', "--watchdog", "1")
    hung = int(started.stdout.readline())
    said = [started.stderr.readline() for _ in range(2)]
    assert f"process {hung} was ended by signal 9" in said[1]


def test_one_that_was_stopped_together_with_the_keeper_does_not_hang(start):
    """As in a container or a machine that is paused."""
    gives_signs = """
import time
tell("READY=1")
say(os.getpid())
for i in range(30):
    tell("WATCHDOG=1")
    time.sleep(0.1)
sys.exit(7)
"""
    started = start(gives_signs, "--watchdog", "1")
    pid = int(started.stdout.readline())
    for process in (pid, started.pid):
        os.kill(process, signal.SIGSTOP)
    time.sleep(2)
    os.kill(started.pid, signal.SIGCONT)
    # The keeper runs first, and finds no sign of life yet.
    time.sleep(0.5)
    os.kill(pid, signal.SIGCONT)
    assert started.wait(30) == 7


@pytest.mark.parametrize(
    "messages",
    [[], ["WATCHDOG=1", "STOPPING=1"], ["READY=1", "RELOADING=1\nOTHER=1"]],
)
def test_one_that_starts_stops_or_reloads_may_be_silent(start, messages):
    silent = "; ".join(f"tell({message!r})" for message in messages)
    program = f"import time; {silent or 'pass'}; time.sleep(2); sys.exit(7)"
    assert start(program, "--watchdog", "1").wait(30) == 7


@pytest.mark.parametrize("seconds", ["", "soon", "-1", "3601", "1s"])
@pytest.mark.parametrize("form", [["--watchdog", "{}"], ["--watchdog={}"]])
def test_a_watchdog_that_is_no_time_is_refused(form, seconds):
    ended = subprocess.run(
        [keeper(), *(part.format(seconds) for part in form), "true"],
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert ended.returncode == 2
    message = f"watchdog is '{seconds}'; must be a whole number of seconds from 0 to"
    assert message in ended.stderr
