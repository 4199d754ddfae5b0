"""The asyncio client has the same calls and docstrings as the blocking client."""

import inspect

import pytest
from pando_kv import Client, Operator
from pando_kv.aio import AsyncClient, AsyncOperator

TWINS = [(Client, AsyncClient), (Operator, AsyncOperator)]
# Only the asyncio client has `connect`, an awaited call that opens the session. Only
# the blocking client has `is_away` and `begin_insert`; asyncio begins an insert as a
# task.
OF_ONE = {"connect", "is_away", "begin_insert"}


def public(kind):
    return {name for name in dir(kind) if not name.startswith("_")} - OF_ONE


def parameters(method):
    given = inspect.signature(method).parameters.values()
    return [(each.name, each.kind, each.default) for each in given]


@pytest.mark.parametrize(("blocking", "awaited"), TWINS)
def test_twins_have_the_same_calls(blocking, awaited):
    assert public(blocking) == public(awaited)


@pytest.mark.parametrize(("blocking", "awaited"), TWINS)
def test_their_calls_take_the_same_and_are_documented_alike(blocking, awaited):
    for name in public(blocking):
        one, other = getattr(blocking, name), getattr(awaited, name)
        if callable(one):
            assert parameters(one) == parameters(other), name
        said = inspect.getdoc(other)
        assert said == inspect.getdoc(one) or said.startswith("As `pando_kv."), name
