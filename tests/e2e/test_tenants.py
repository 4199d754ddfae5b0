"""Tenants name and see only the namespaces that their credentials allow."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from credentials import calls, folder_of_tokens, guarded, token_of
from eventually import eventually
from pando_kv import AccessDeniedError, Client, Namespace, PrefixQuery
from pando_kv._proto.pando.v1 import admin_pb2, prefix_cache_pb2
from pandod_process import PAGE_TOKENS, POOL_PAGES
from raw_calls import RawCalls

TOKENS = list(range(PAGE_TOKENS))
TENANTS = """
- name: tenant-a
  role: worker
  token_file: FOLDER/a.token
  namespaces:
  - extra_key: tenant-a/*
- name: tenant-b
  role: worker
  token_file: FOLDER/b.token
  namespaces:
  - cache_salt: salt-of-b
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    with folder_of_tokens() as path:
        yield path


def test_a_tenant_may_name_its_own_namespaces_only(folder):
    ours = Namespace(extra_key="tenant-a/lora")
    others = [
        None,
        Namespace(extra_key="tenant-b/lora"),
        Namespace(extra_key="tenant-a"),
        Namespace(extra_key="tenant-a/\0", cache_salt=""),
    ]
    with guarded(folder, TENANTS) as pandod:
        with Client(pandod.address, token=token_of("a")) as client:
            pages = client.allocate_pages(1, namespace=ours)
            client.insert(TOKENS, pages, namespace=ours)
            match = client.match_prefix(
                TOKENS, namespace=ours, lock=True, reserve_tokens=2 * PAGE_TOKENS
            )
            assert match.matched_tokens == PAGE_TOKENS
            # The lock says which namespace the insert goes to.
            client.insert(
                [1] * PAGE_TOKENS, match.reserved_page_ids, lock=match.lock, unlock=True
            )
            for other in others:
                for call in (
                    lambda ns: client.match_prefix(TOKENS, namespace=ns),
                    lambda ns: client.lock(TOKENS, namespace=ns),
                    lambda ns: client.insert([], [], namespace=ns),
                    lambda ns: client.allocate_pages(1, namespace=ns),
                    lambda ns: client.match_prefixes(
                        [PrefixQuery(TOKENS, namespace=ours), PrefixQuery(TOKENS, ns)]
                    ),
                ):
                    with pytest.raises(AccessDeniedError) as refused:
                        call(other)
                    assert refused.value.reason == "NAMESPACE_REFUSED"


def test_a_tenant_may_be_known_by_its_salt_which_no_refusal_shows(folder):
    with guarded(folder, TENANTS) as pandod:
        with Client(pandod.address, token=token_of("b")) as client:
            ours = Namespace(extra_key="any", cache_salt="salt-of-b")
            assert client.match_prefix(TOKENS, namespace=ours).matched_tokens == 0
            with pytest.raises(AccessDeniedError) as refused:
                client.match_prefix(TOKENS, namespace=Namespace(cache_salt="guessed"))
            assert "salt-of-b" not in refused.value.message
            assert "guessed" not in refused.value.message


def test_a_long_key_costs_a_refusal_neither_its_reason_nor_its_message(folder):
    with guarded(folder, TENANTS) as pandod:
        with Client(pandod.address, token=token_of("a")) as client:
            for key in ("b" * 20_000, "\u20ac" * 20_000):
                with pytest.raises(AccessDeniedError) as refused:
                    client.match_prefix(TOKENS, namespace=Namespace(extra_key=key))
                assert refused.value.reason == "NAMESPACE_REFUSED"
                assert "credential 'tenant-a' may not name" in refused.value.message


def test_a_tenant_sees_no_class_of_others(folder):
    quotas = (
        'quotas: [{class: beta, extra_key: "tenant-b/*", floor_pages: 2}]\n'
        "memory: 16MiB\n"
        'block_quotas: [{name: beta blocks, label: "b*"}]\n'
    )
    reader = "- {name: all, role: reader, token_file: FOLDER/reader.token}\n"

    def classes_for(name: str) -> list[str]:
        with calls(pandod, name) as raw:
            answer = raw.unary("pando.v1.Admin/GetStats")
        stats = admin_pb2.GetStatsResponse.FromString(answer)
        assert stats.pages.capacity == POOL_PAGES
        quotas = [*stats.quota_classes, *stats.blocks.quotas]
        return [quota.name for quota in quotas]

    with guarded(folder, TENANTS + reader + quotas) as pandod:
        assert classes_for("a") == []
        assert classes_for("reader") == ["beta", "", "beta blocks"]


def test_a_tenant_sees_nothing_that_spans_namespaces(folder):
    spanning = [
        "pando.v1.Events/Watch",
        *(
            f"pando.v1.Admin/{name}"
            for name in ("ListNamespaces", "ListSessions", "ListLocks", "DumpTree")
        ),
        "pando.v1.Admin/ExplainMatch",
    ]
    with guarded(folder, TENANTS) as pandod, calls(pandod, "a") as raw:
        for method in spanning:
            refused = raw.stream_failure(method, b"")
            assert refused == ("PERMISSION_DENIED", "NAMESPACE_REFUSED"), method


def test_calls_without_a_session_that_is_open_count_by_the_credential(folder):
    """No tenant uses up another's rate, or raises its own with made-up sessions."""
    method = "pando.v1.PrefixCache/MatchPrefix"
    with guarded(folder, TENANTS, max_calls_per_second=1) as pandod:
        with calls(pandod, "a") as first, calls(pandod, "a") as second:
            ids = itertools.count()

            def is_limited(raw: RawCalls) -> bool:
                ours = prefix_cache_pb2.MatchPrefixRequest(session_id=next(ids))
                ours.namespace.extra_key = "tenant-a/x"
                call = raw.start(method, ours)
                return call.has_failed() and call.failure()[1] == "RATE_LIMITED"

            eventually(lambda: is_limited(first))
            eventually(lambda: is_limited(second))
        with calls(pandod, "b") as other:
            theirs = prefix_cache_pb2.MatchPrefixRequest()
            theirs.namespace.cache_salt = "salt-of-b"
            other.unary(method, theirs)
