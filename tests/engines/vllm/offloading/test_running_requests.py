"""vLLM's own Scheduler over blocks, with requests in flight during chunks, preemption,
late loads, resets, a drain of pandod, and a stalled disk."""

import contextlib

import pytest
from blocks import MIB, keys, of, spec
from engines.vllm.offloading.conftest import nothing_is_held, serve_blocks
from engines.vllm.offloading.engine_alone import WINDOWS, EngineAlone
from engines.vllm.offloading.late_copies import do_copies_late
from engines.vllm.offloading.patience import LONG, be_patient
from engines.vllm.start import prompt
from eventually import eventually
from metrics_page import MetricsPage, free_address
from pando_kv import Client
from pando_kv.blocks import are_places
from pando_kv.vllm.offloading import scheduler
from stalled_disk import StalledDisk

# A prompt that takes five steps. All of its tokens except 12 are in whole blocks.
TOKENS = prompt(300, seed=30)
WHOLE = 288
PLAIN = {"windows": (None,)}


class NotesPreemptions(EngineAlone):
    def __init__(self, *given, **named):
        super().__init__(*given, **named)
        self.preempted = set()

    def work(self, output):
        self.preempted |= output.preempted_req_ids
        return super().work(output)


@pytest.fixture
def start_late(start, monkeypatch):
    """Returns a function that starts an engine. It returns the engine and `finish`.

    The engine copies nothing until the test calls `finish`, and at once afterwards."""
    is_over = []

    def make(**arguments):
        do_copies_late(monkeypatch, lambda count: count if is_over else 0)
        return start(**arguments), lambda: is_over.append(True)

    return make


def run_until_it_decodes(engine, request):
    while request.num_output_tokens < 5:
        engine.step()


def test_a_block_is_found_before_the_prompt_that_it_is_of_is_over(start, monkeypatch):
    monkeypatch.setattr(scheduler, "_PENDING_SECONDS", -1.0)
    first, second = start(**PLAIN), start(**PLAIN)
    request = first.add("goes on", TOKENS)
    for _ in range(4):
        first.step()
    assert request.num_computed_tokens < len(TOKENS)
    assert second.ask("found", TOKENS) == 192
    first.run()


@pytest.mark.parametrize(("windows", "blocks"), [((None,), 13), (WINDOWS, 40)])
def test_preempted_requests_load_what_they_had_stored_and_end(
    start, operator, windows, blocks
):
    """The outputs of the requests outgrow the engine's blocks."""
    engine = start(kind=NotesPreemptions, windows=windows, blocks=blocks)
    requests = [engine.add(f"{n}", prompt(120, seed=n), new=100) for n in range(3)]
    engine.run()
    assert engine.preempted
    assert operator.stats().blocks.hits > 0
    assert [request.num_output_tokens for request in requests] == [100] * 3


def test_a_request_that_waits_for_its_load_holds_up_no_other(start, start_late):
    start().ask("computed", TOKENS)
    engine, finish = start_late()
    engine.add("waits", TOKENS)
    engine.add("other", prompt(40, seed=31), new=3)
    assert [engine.step() for _ in range(3)] == [{"other": 40}, *[{"other": 1}] * 2]
    assert "other" not in engine.scheduler.requests
    assert engine.step() == {}
    finish()
    assert engine.step() == {}
    assert engine.step() == {"waits": len(TOKENS) - WHOLE}
    engine.run()


def test_an_abort_leaves_blocks_locked_until_their_load_is_over(
    start, start_late, operator
):
    start().ask("computed", TOKENS)
    engine, finish = start_late()
    engine.add("aborted", TOKENS)
    engine.step()
    engine.abort("aborted")
    for _ in range(3):
        engine.step()
    assert operator.stats().blocks.protected_blocks > 0
    finish()
    engine.run()
    assert nothing_is_held(operator)


def test_a_request_that_waits_during_a_reset_has_found_nothing(start, operator):
    """The engine has no room yet for the blocks that the request found."""
    first, second = start(), start(blocks=28)
    first.ask("computed", TOKENS)
    second.add("runs", prompt(200, seed=32), new=60)
    for _ in range(6):
        second.step()
    second.add("waits", TOKENS)
    second.step()
    assert operator.stats().blocks.protected_blocks > 0
    second.reset()
    assert operator.stats().blocks.protected_blocks == 0
    second.run()
    assert second.found["waits"] == 0


def test_a_running_request_that_a_reset_stops_begins_again_and_ends(start):
    engine = start(kind=NotesPreemptions)
    request = engine.add("runs", TOKENS, new=50)
    run_until_it_decodes(engine, request)
    engine.scheduler.reset_prefix_cache(
        reset_running_requests=True, reset_connector=True
    )
    computed = []
    while request.num_output_tokens == 5:
        computed += engine.step().values()
    assert engine.preempted == {"runs"}
    assert sum(computed) == len(TOKENS) + 5
    engine.run()
    assert request.num_output_tokens == 50


def test_while_pandod_drains_an_engine_stores_until_it_holds_nothing_and_then_computes(
    start, operator
):
    engine = start()
    engine.ask("stored", TOKENS)
    running = engine.add("runs", prompt(300, seed=33), new=100)
    for _ in range(3):
        engine.step()
    blocks = operator.stats().blocks
    assert blocks.reserved_blocks > 0
    operator.drain()
    engine.run()
    assert running.num_output_tokens == 100
    stored = operator.stats().blocks.published_blocks
    assert stored > blocks.published_blocks + blocks.reserved_blocks

    engine.forget()
    assert nothing_is_held(operator)
    late = engine.add("new", TOKENS, new=40)
    engine.run()
    assert engine.found["new"] == 0
    assert late.num_output_tokens == 40
    assert operator.stats().blocks.published_blocks == stored
    assert nothing_is_held(operator)


def test_a_load_that_is_under_way_when_pandod_drains_is_read(
    start, start_late, operator
):
    start().ask("computed", TOKENS)
    engine, finish = start_late()
    request = engine.add("loads", TOKENS, new=40)
    engine.step()
    operator.drain()
    finish()
    engine.run()
    assert engine.found["loads"] == WHOLE
    assert request.num_output_tokens == 40


class BlocksOnDisk:
    """An engine, and a pandod that has the engine's blocks only on a stalled disk."""

    def __init__(self, model, folder, stack):
        self.disk, self._http = StalledDisk(folder), free_address()
        # StalledDisk stalls calls for files in a folder of this name.
        tier = {"block_tier_disk": folder / "shared", "block_tier_disk_bytes": "64MiB"}
        server = serve_blocks(folder, "8MiB", http=self._http, **tier)
        stack.callback(server.close)
        stack.callback(self.disk.go_on)
        server.stop()
        server.start(**self.disk.environment)
        self.operator = stack.enter_context(Client(server.address, name="operator"))
        self.engine = EngineAlone(model, server.address, **PLAIN)
        stack.callback(self.engine.close)
        self.engine.ask("computed", TOKENS)
        self.engine.forget()
        eventually(lambda: self._on_disk() == WHOLE // 32)
        self._evict()
        self.disk.stall()

    def _on_disk(self):
        return MetricsPage(self._http).sum("pando_block_tier_blocks")

    def _evict(self):
        """Evicts all blocks by reserving the whole memory."""
        (kind,) = self.operator.open_kinds([spec("large", MIB)])
        places = self.operator.reserve_blocks(1, [of(kind, keys(8))])
        assert are_places(places).all()
        self.operator.discard_blocks(1)


@pytest.fixture
def on_disk(model, tmp_path, monkeypatch):
    be_patient(monkeypatch.setattr)
    monkeypatch.setattr(scheduler, "_PENDING_SECONDS", LONG)
    with contextlib.ExitStack() as stack:
        blocks = BlocksOnDisk(model, tmp_path, stack)
        yield blocks
        blocks.disk.go_on()
        eventually(lambda: nothing_is_held(blocks.operator))
        assert blocks.operator.check_invariants() == []


def test_a_request_that_waits_for_the_disk_holds_up_no_other(on_disk):
    engine = on_disk.engine
    engine.add("waits", TOKENS)
    engine.add("other", prompt(40, seed=34), new=3)
    assert [engine.step() for _ in range(3)] == [{"other": 40}, *[{"other": 1}] * 2]
    assert "other" not in engine.scheduler.requests
    assert engine.step() == {}
    on_disk.disk.go_on()
    eventually(lambda: engine.step() == {"waits": len(TOKENS) - WHOLE})
    engine.run()


def test_a_request_that_has_waited_long_enough_for_the_disk_is_computed(
    on_disk, monkeypatch
):
    engine = on_disk.engine
    engine.add("waits", TOKENS)
    assert [engine.step() for _ in range(3)] == [{}] * 3
    monkeypatch.setattr(scheduler, "_PENDING_SECONDS", -1.0)
    assert engine.step() == {"waits": 64}
    on_disk.disk.go_on()
    engine.run()


def test_an_abort_of_a_request_that_waits_for_the_disk_leaves_nothing(on_disk):
    engine = on_disk.engine
    engine.add("aborted", TOKENS)
    assert engine.step() == {}
    engine.abort("aborted")
    engine.run()
    on_disk.disk.go_on()
    eventually(lambda: nothing_is_held(on_disk.operator))
