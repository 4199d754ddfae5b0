"""Settings and models that vLLM over blocks refuses when it starts."""

from types import SimpleNamespace

import pytest
from engines.vllm.offloading.engine_alone import EngineAlone
from engines.vllm.offloading.late_copies import do_copies_late
from engines.vllm.start import prompt
from vllm.config import VllmConfig
from vllm.distributed.kv_transfer import kv_transfer_state


@pytest.mark.parametrize(
    ("is_second", "has_zeros"), [(True, True), (True, False), (False, True)]
)
def test_the_second_model_runner_is_refused_where_it_writes_zeros(
    start, monkeypatch, is_second, has_zeros
):
    """The second runner writes zeros before a finished request's blocks are stored."""
    cache = SimpleNamespace(needs_kv_cache_zeroing=has_zeros)
    connector = SimpleNamespace(_kv_cache_config=cache)
    monkeypatch.setattr(kv_transfer_state, "_KV_CONNECTOR_AGENT", connector)
    monkeypatch.setattr(VllmConfig, "use_v2_model_runner", is_second)
    # vLLM refuses the second runner without Triton, which is not installed here.
    monkeypatch.setattr(VllmConfig, "_validate_v2_model_runner", lambda _: None)
    if not (is_second and has_zeros):
        start()
        return
    with pytest.raises(
        ValueError,
        match="^PandoOffloadingSpec does not support a model with states, or with KV "
        "of several precisions, under vLLM's second model runner, .*; "
        "VLLM_USE_V2_MODEL_RUNNER=0 chooses the first$",
    ):
        start()


class FirstRunner(EngineAlone):
    """An engine that fills new blocks with zeros, as vLLM's first model runner does."""

    def _compute(self, output):
        self._fill(output)
        super()._compute(output)

    def _fill(self, output):
        added = [ids for ids in output.scheduled_cached_reqs.new_block_ids if ids]
        for ids in [*added, *(new.block_ids for new in output.scheduled_new_reqs)]:
            self.memory[:, ids[0]] = 0


class SecondRunner(FirstRunner):
    """An engine that fills new blocks before it tells the connector of the step."""

    def work(self, output):
        self._fill(output)
        return super().work(output)


@pytest.mark.parametrize("runner", [FirstRunner, SecondRunner])
def test_what_was_in_a_block_is_stored_before_the_first_runner_fills_it_with_zeros(
    start, monkeypatch, runner
):
    """The second runner fills them first, and is refused for that reason."""
    is_late = True
    do_copies_late(monkeypatch, lambda count: 0 if is_late else count)
    plain = {"windows": (None,)}
    engine, tokens = start(kind=runner, blocks=12, **plain), prompt(300, seed=17)
    engine.add("1", tokens)
    while engine.scheduler.requests:
        engine.step()
    engine.add("2", prompt(300, seed=18))
    while engine.scheduler.requests:
        engine.step()
    is_late = False
    engine.run()
    reader = start(**plain)
    if runner is FirstRunner:
        assert reader.ask("1", tokens) == 288
    else:
        with pytest.raises(AssertionError, match="1 reads .* what is not its own"):
            reader.ask("1", tokens)
        reader.abort("1")
        reader.run()


def test_ranks_of_a_pipeline_are_refused(start):
    with pytest.raises(
        ValueError,
        match="^PandoOffloadingSpec does not support --pipeline-parallel-size above 1$",
    ):
        start(pipeline_parallel_size=2)
