"""The copy mode while pandod drains."""

from engines.vllm.pool import BLOCK_TOKENS
from engines.vllm.steps import Request, Step, tokens, written
from pando_kv import Client
from pando_kv.vllm.copy_scheduler import CopyScheduler


def test_what_was_admitted_is_saved_though_what_is_new_is_refused(pandod, operator):
    with Client(pandod.address, name="scheduler") as client:
        scheduler = CopyScheduler(client, BLOCK_TOKENS, workers=2)
        running = Request("1", tokens(150))
        scheduler.matched_tokens(running, 0)
        plan = scheduler.plan(Step(new=[(running, [1, 2], 0, 64)]))
        scheduler.take(written(plan))
        operator.drain()
        assert scheduler.matched_tokens(Request("2", tokens(100)), 0) == 0
        plan = scheduler.plan(Step(cached=[(running, [3, 4, 5], 64, 86)]))
        scheduler.take(written(plan))
        scheduler.end("1")
        assert operator.match_prefix(tokens(150)).matched_tokens == 128
        stats = operator.stats()
        assert (stats.locks, stats.pages.reserved) == (0, 0)
