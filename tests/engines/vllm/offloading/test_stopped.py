"""Stops, kills and restarts of pandod in each phase of the seam. The engine goes on and
reads only KV of its own requests, and no step waits for more than one call."""

import pytest
from engines.vllm.offloading.calls import counted
from engines.vllm.offloading.conftest import nothing_is_held, serve_blocks
from engines.vllm.offloading.engine_alone import EngineAlone
from engines.vllm.offloading.stopped_server import StoppableServer
from engines.vllm.start import prompt
from eventually import eventually
from pando_kv import Client

OF_THE_SCHEDULER = (
    "on_new_request",
    "lookup",
    "prepare_load",
    "on_schedule_end",
    "complete_load",
    "prepare_store",
    "complete_store",
    "on_request_finished",
)
OF_THE_WORKER = ("submit_load", "submit_store", "get_finished")
# reset_cache and wait come last, because an engine shares no blocks after a reset.
PHASES = [
    *(("manager", name) for name in OF_THE_SCHEDULER),
    *(("copies", name) for name in OF_THE_WORKER),
    ("manager", "reset_cache"),
    ("copies", "wait"),
]
WHATS = ("stop", "kill", "restart")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    pandod = serve_blocks(tmp_path_factory.mktemp("stopped"))
    yield StoppableServer(pandod)
    pandod.close()


@pytest.fixture(scope="module")
def engines(server, model):
    pair = [EngineAlone(model, server.pandod.address) for _ in range(2)]
    yield pair
    for engine in pair:
        engine.close()


def at(engine, side, name, do, monkeypatch):
    """Calls `do` before the method is called next; returns a list, empty until then."""
    owner, came = getattr(engine, side), []
    method = getattr(owner, name)

    def first(*given, **named):
        if not came:
            came.append(name)
            do()
        return method(*given, **named)

    monkeypatch.setattr(owner, name, first)
    return came


def has_kinds_of(engine, epoch):
    kinds = engine.manager._kinds.now
    return kinds is not None and kinds.epoch == epoch


@pytest.mark.parametrize("what", WHATS)
@pytest.mark.parametrize(("side", "phase"), PHASES)
def test_an_engine_goes_on(side, phase, what, server, engines, monkeypatch):
    first, second = engines
    seed = 100 * WHATS.index(what) + PHASES.index((side, phase))
    tokens = prompt(300, seed=seed)
    first.ask(f"computed {seed}", tokens)
    came = at(second, side, phase, getattr(server, what), monkeypatch)
    with counted(second.clients[0]) as calls:
        # The request loads the blocks that exist, and stores the rest.
        second.add(f"found {seed}", tokens + prompt(150, seed=seed + 1000), new=3)
        second.step()
        second.step()
        if phase in ("reset_cache", "wait"):
            second.reset()
        second.run()
        for n in range(3):
            second.ask(f"{n} {seed}", prompt(200, seed=seed + 2000 + n), new=3)
    assert came or phase == "wait"
    # If pandod is stopped, the first call without an answer tells the engine.
    assert calls.unanswered <= (1 if what == "stop" else 2)

    server.go_on()
    for client in (*first.clients, *second.clients):
        eventually(lambda client=client: not client.is_away)
    with Client(server.pandod.address, name="operator") as operator:
        epoch = operator.epoch
    for engine in engines:
        eventually(lambda engine=engine: has_kinds_of(engine, epoch))
    for engine in engines:
        engine.run()
        engine.forget()
    after = prompt(300, seed=seed + 3000)
    first.ask(f"after {seed}", after)
    assert second.ask(f"after {seed}", after) in (0, 288)
    with Client(server.pandod.address, name="operator") as operator:
        eventually(lambda: nothing_is_held(operator))
        assert operator.check_invariants() == []
