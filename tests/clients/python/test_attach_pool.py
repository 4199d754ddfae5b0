"""Attaching a pool with the right or a wrong layout and model, and the refusals."""

import shlex

import pytest
from pando_kv import Client, DType, KvLayout, LayoutMismatchError, PandoError
from pandod_process import OPEN, PAGE_TOKENS, POOL_PAGES, serving


def test_the_pool_describes_the_layout_that_the_client_computes(client):
    pool = client.describe_pool()
    assert pool == client.pool
    expected = KvLayout.make(
        capacity_pages=POOL_PAGES,
        layers=2,
        heads=2,
        head_size=8,
        dtype=DType.FLOAT32,
        page_tokens=PAGE_TOKENS,
    )
    assert pool.layout == expected
    assert pool.fingerprint == expected.fingerprint(pool.model)
    with client.attach_pool(expected_layout=expected, model=pool.model) as mapped:
        assert mapped.epoch == client.epoch
        assert mapped.keys(0).shape == (POOL_PAGES, PAGE_TOKENS, 2, 8)


def test_a_worker_may_state_its_model_alone(tmp_path):
    with serving(tmp_path, model="llama") as pandod, Client(pandod.address) as client:
        client.attach_pool(model="llama").close()
        with pytest.raises(
            LayoutMismatchError, match="model is '', the pool's is 'llama'"
        ):
            client.attach_pool(model="")


def test_a_worker_whose_model_is_configured_otherwise_is_refused(tmp_path):
    """The first worker that states a digest sets the digest of the pool."""
    with serving(tmp_path) as pandod, Client(pandod.address) as client:
        client.attach_pool().close()
        client.attach_pool(model_digest="theta 1e4").close()
        with pytest.raises(LayoutMismatchError, match="'theta 1e6', .* of 'theta 1e4'"):
            client.attach_pool(model_digest="theta 1e6")
        with pytest.raises(PandoError, match="model_digest has 257 bytes; at most 256"):
            client.attach_pool(model_digest="x" * 257)
        with pytest.raises(LayoutMismatchError, match="model is 'another'"):
            client.attach_pool(model="another", model_digest="theta 1e4")
        client.attach_pool(model_digest="theta 1e4").close()
        client.attach_pool().close()


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({"heads": 8}, "heads is 8, the pool's is 2"),
        ({"dtype": "bfloat16"}, "dtype is 'bfloat16', the pool's is 'float32'"),
        ({"order": "page_first"}, "order is 'page_first', the pool's is 'layer_first'"),
        ({"capacity_pages": 2}, "layer_stride is 4096, the pool's is 131072"),
    ],
)
def test_a_worker_of_another_layout_is_refused_and_told_what_differs(
    client, other, says
):
    fields = {
        "capacity_pages": POOL_PAGES,
        "layers": 2,
        "heads": 2,
        "head_size": 8,
        "dtype": DType.FLOAT32,
        "page_tokens": PAGE_TOKENS,
    }
    layout = KvLayout.make(**fields | other)
    with pytest.raises(LayoutMismatchError, match=says):
        client.attach_pool(expected_layout=layout)


def test_a_worker_is_told_of_no_size_where_there_are_blocks_and_no_pool(tmp_path):
    layout = KvLayout.make(
        capacity_pages=2,
        layers=36,
        heads=8,
        head_size=128,
        dtype="bfloat16",
        page_tokens=16,
    )
    with (
        serving(tmp_path, **OPEN, memory="16MiB") as pandod,
        Client(pandod.address) as client,
    ):
        assert client.pool.is_absent
        with pytest.raises(
            LayoutMismatchError, match="pandod --pool-bytes SIZE --layers 36"
        ):
            client.attach_pool(expected_layout=layout)


def test_a_worker_that_does_not_fit_is_told_all_that_differs_and_the_pandod_that_would(
    client, tmp_path
):
    def layout(pages):
        return KvLayout.make(
            capacity_pages=pages,
            layers=3,
            heads=4,
            head_size=8,
            dtype="bfloat16",
            page_tokens=32,
            page_format="a b",
        )

    with pytest.raises(LayoutMismatchError) as refused:
        client.attach_pool(expected_layout=layout(POOL_PAGES), model="other")
    fields, _, line = refused.value.message.partition("; a pool that fits: ")
    assert fields == (
        "layers is 3, the pool's is 2; heads is 4, the pool's is 2; "
        "dtype is 'bfloat16', the pool's is 'float32'; "
        "page_tokens is 32, the pool's is 16; page_format is 'a b', the pool's is ''; "
        "model is 'other', the pool's is ''"
    )
    # The refusal prints a command line for a pandod that this worker can attach to.
    _, *flags = shlex.split(line)
    given = dict(zip(flags[::2], flags[1::2], strict=True))
    options = {name.strip("-").replace("-", "_"): v for name, v in given.items()}
    folder = tmp_path / "f"
    folder.mkdir()
    with serving(folder, pool_pages=None, **options) as fitting:
        with Client(fitting.address) as worker:
            fits = layout(worker.pool.capacity_pages)
            worker.attach_pool(expected_layout=fits, model="other").close()


def test_a_worker_with_opaque_pages_is_told_of_a_pool_with_such_pages(client):
    layout = KvLayout.opaque(
        capacity_pages=POOL_PAGES, layers=2, page_bytes=4096, page_tokens=PAGE_TOKENS
    )
    with pytest.raises(
        LayoutMismatchError, match=r"--layers 2 --page-bytes 4096 --pag"
    ):
        client.attach_pool(expected_layout=layout)


def test_a_worker_of_another_model_is_refused(client):
    with pytest.raises(LayoutMismatchError, match="model is 'another model'"):
        client.attach_pool(model="another model")
