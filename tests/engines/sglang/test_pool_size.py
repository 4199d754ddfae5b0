"""Sizes that SGLang takes from the pool, because the pool is its KV memory."""

from argparse import ArgumentParser
from types import SimpleNamespace

import pytest
from pando_kv.sglang import ADDRESS
from pando_kv.sglang.platform import PandoCpuPlatform
from pando_kv.sglang.pool_size import leave_kv_to_pool
from pandod_process import OPEN, serving

GIVEN_SIZES = ["--page-size", "32", "--max-total-tokens", "4096"]


def resolved(model, *flags):
    """Returns SGLang's arguments for `flags`, after the defaults of the platform."""
    from sglang.srt.arg_groups.overrides import record_foreign_defaults, resolving_view
    from sglang.srt.server_args import ServerArgs

    parser = ArgumentParser()
    ServerArgs.add_cli_args(parser)
    line = ["--model-path", str(model), "--device", "cpu", *flags]
    args = ServerArgs.from_cli_args(parser.parse_args(line))
    defaults = PandoCpuPlatform().apply_server_args_defaults
    record_foreign_defaults(args, "platform:cpu", defaults)
    return resolving_view(args)


def test_an_open_pool_says_no_size_before_it_has_the_layout_of_the_engine(
    model, tmp_path, monkeypatch
):
    with serving(tmp_path, **OPEN | {"pool_bytes": 8 << 20}) as pandod:
        monkeypatch.setenv(ADDRESS, pandod.address)
        backend = ("--radix-cache-backend", "pando")
        args = resolved(model, *backend)
        assert (args.page_size, args.max_total_tokens) == (16, None)
        given = resolved(model, *backend, *GIVEN_SIZES)
        assert (given.page_size, given.max_total_tokens) == (32, 4096)


@pytest.mark.parametrize(
    ("backend", "flags", "expected"),
    [
        (["--radix-cache-backend", "pando"], [], (16, 8176)),
        (["--radix-cache-backend", "pando"], GIVEN_SIZES, (32, 4096)),
        ([], [], (None, None)),
    ],
    ids=["not given", "given", "another backend"],
)
def test_sizes_that_are_not_given_are_those_of_the_pool(
    model, roomy, monkeypatch, backend, flags, expected
):
    monkeypatch.setenv(ADDRESS, roomy.address)
    args = resolved(model, *backend, *flags)
    assert (args.page_size, args.max_total_tokens) == expected


@pytest.fixture
def configurator():
    """Returns a stand-in for SGLang's configurator, for a model that Pando supports."""
    return SimpleNamespace(
        use_mla_backend=False, is_hybrid_swa=False, mambaish_config=None
    )


@pytest.fixture
def choose(monkeypatch):
    from sglang.srt import runtime_context

    def choose_backend(name):
        memory = SimpleNamespace(radix_cache_backend=name)
        monkeypatch.setattr(runtime_context, "get_memory", lambda: memory)

    sizes = SimpleNamespace(max_total_tokens=4096)
    monkeypatch.setattr(runtime_context, "get_schedule", lambda: sizes)
    choose_backend("pando")
    return choose_backend


def test_memory_that_is_free_does_not_limit_the_pool(configurator, choose):
    assert leave_kv_to_pool(lambda *_: 1, configurator, 40) > 1 << 50


@pytest.mark.parametrize(
    "field", ["use_mla_backend", "is_hybrid_swa", "mambaish_config"]
)
def test_memory_that_sglang_allocates_itself_stays_limited(configurator, choose, field):
    setattr(configurator, field, True)
    assert leave_kv_to_pool(lambda *_: 1, configurator, 40) == 1


def test_the_memory_of_another_backend_stays_limited(configurator, choose):
    choose("default")
    assert leave_kv_to_pool(lambda *_: 1, configurator, 40) == 1


def test_an_engine_without_room_for_activations_is_refused(configurator, choose):
    def refuse(*_):
        raise ValueError("Raise --mem-fraction-static above 0.944")

    with pytest.raises(
        ValueError, match=r"too little memory is free for activations.*above 0\.944"
    ):
        leave_kv_to_pool(refuse, configurator, 40)
