"""A check of an engine whose pandod is killed under its keeper."""

from collections.abc import Sequence

from engines.engine_process import EngineProcess
from kept_pandod import KeptPandod
from pando_kv import Operator

KILLS = 8
STEPS_BETWEEN = 6
MOST_STEPS = 400


def goes_on_through_kills(
    pandod: KeptPandod,
    engine: EngineProcess,
    running: Sequence[str | int],
    expected: list[list[int]],
) -> None:
    """Kills pandod again and again while the engine serves these requests, and compares
    their tokens with `expected`."""
    for _ in range(KILLS):
        pandod.wait_serving()
        engine.ask(step=STEPS_BETWEEN)
        pandod.kill_server()
    engine.ask(step=MOST_STEPS)
    assert [engine.ask(output=request)["output"] for request in running] == expected
    with Operator(pandod.address) as operator:
        assert operator.stats().locks == 0
        assert operator.stats().page_recoveries == KILLS
        assert operator.check_invariants() == []
