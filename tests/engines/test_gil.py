"""Calls that wait while other threads of the process run. Only those other threads can
end the wait, so a waiting call must not hold the GIL."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from eventually import eventually
from pando_kv import Client
from pandod_process import PAGE_TOKENS, Pandod
from prompts import prompt

LONG = 600.0


@pytest.fixture
def pandod(tmp_path):
    server = Pandod(tmp_path)
    server.start()
    yield server
    server.close()


@pytest.fixture(params=[True, False], ids=["lane", "grpc"])
def waiting(request, pandod):
    """Yields a call that waits for a page in another thread, and what ends the wait."""
    with (
        Client(pandod.address, lane=request.param) as client,
        Client(pandod.address) as owner,
        ThreadPoolExecutor(1) as pool,
    ):
        assert client.transport == ("lane" if request.param else "grpc")
        computed = owner.match_prefix(prompt(1), lock=True, reserve_tokens=PAGE_TOKENS)
        call = pool.submit(client.match_prefix, prompt(1), lock=True, pending_wait=LONG)
        eventually(lambda: owner.stats().waiting_matches == 1)
        yield call, computed.lock.release
        call.result().lock.release()


def test_a_wait_does_not_hold_the_gil(waiting):
    call, end = waiting
    assert sum(range(100_000)) > 0
    assert not call.done()
    end()


def test_a_wait_does_not_stop_torch_from_calling_python(waiting):
    """An autograd thread takes the GIL while the main thread waits for that thread."""
    call, end = waiting

    class Ends(torch.autograd.Function):
        @staticmethod
        def forward(context, values):
            return values * 2

        @staticmethod
        def backward(context, gradient):
            end()
            return gradient * 2

    values = torch.ones(8, requires_grad=True)
    Ends.apply(values).sum().backward()
    assert values.grad.tolist() == [2.0] * 8
    call.result()


def test_a_wait_does_not_stop_threads_of_torch(waiting):
    call, end = waiting
    with ThreadPoolExecutor(2) as pool:
        products = pool.map(
            lambda seed: torch.full((64, 64), float(seed)) @ torch.eye(64), range(8)
        )
        assert [product[0, 0].item() for product in products] == list(range(8))
    assert not call.done()
    end()
