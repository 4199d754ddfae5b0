"""Formats the demo's tables."""

from collections import Counter
from dataclasses import dataclass

import pando_kv
from generation import Answer
from model import ModelConfig
from workload import Request


@dataclass(frozen=True)
class Served:
    """One request with its answers: from a worker with Pando, and from the reference
    without."""

    worker: str
    request: Request
    answer: Answer
    reference: Answer
    # The number of matched tokens by the worker that wrote their pages.
    written_by: Counter[str]


def title(config: ModelConfig, pool: pando_kv.PoolDescription) -> str:
    return (
        "Two workers take turns over one KV cache: a transformer of "
        f"{config.layers} layers, {config.heads} query heads and {config.kv_heads} KV\n"
        f"heads of {config.head_size}; {pool.capacity_pages:,} shared pages of "
        f"{config.page_tokens} tokens, {pool.page_bytes // 1024} KiB each.\n"
    )


def headings() -> str:
    lines = [
        _line("", "", "tokens of the prompt", "written by", "time to first token"),
        _line(
            "worker",
            "request",
            f"{'all':>7}{'sent':>8}{'matched':>9}{'':6}",
            f"{'A':>7}{'B':>8}",
            f"{'cache':>9}{'no cache':>10}{'faster':>9}",
        ),
        _rule(),
    ]
    return "\n".join(lines)


def row(served: Served) -> str:
    return _figures(served.worker, served.request.name, [served])


def totals(all_served: list[Served]) -> str:
    return (
        f"{_rule()}\n{_figures('total', '', all_served)}\n"
        "Times vary from run to run; what is matched, and each bit, does not."
    )


def prefill(all_served: list[Served]) -> str:
    cached = sum(served.answer.prefill_rows for served in all_served)
    uncached = sum(served.reference.prefill_rows for served in all_served)
    crossed = sum(
        tokens
        for served in all_served
        for worker, tokens in served.written_by.items()
        if worker != served.worker
    )
    return (
        f"prefill   {cached:,} tokens computed, {uncached:,} without the cache; "
        f"{crossed:,} tokens read\n"
        "          from pages that the other worker wrote"
    )


def sent(all_served: list[Served]) -> str:
    tokens = sum(served.answer.sent_tokens for served in all_served)
    prompts = sum(len(served.request.prompt) for served in all_served)
    return (
        f"sent      {tokens:,} of {prompts:,} prompt tokens: a turn of the chat begins "
        "at the handle of\n          the turn before, which the other worker served"
    )


def pages(stats: pando_kv.Stats) -> str:
    states = ("free", "reserved", "evictable", "protected", "quarantined", "padding")
    parts = " + ".join(f"{getattr(stats.pages, state):,} {state}" for state in states)
    return f"pages     {parts} = {stats.pages.capacity:,}"


def verified(all_served: list[Served]) -> str:
    rows = sum(len(served.answer.logits) for served in all_served)
    tokens = sum(len(served.answer.reply) for served in all_served)
    return (
        f"verified  {rows:,} logit rows and {tokens:,} generated tokens bit-equal to "
        "runs without a cache;\n"
        "          each match is all that was cached, prefill is less by just that;\n"
        "          pages sum to capacity, every invariant holds, no lock or reserved\n"
        "          page is left"
    )


def _figures(worker: str, name: str, all_served: list[Served]) -> str:
    prompt = sum(len(served.request.prompt) for served in all_served)
    sent = sum(served.answer.sent_tokens for served in all_served)
    matched = sum(served.answer.matched_tokens for served in all_served)
    written_by = sum((served.written_by for served in all_served), Counter())
    cached = sum(served.answer.first_token_seconds for served in all_served)
    uncached = sum(served.reference.first_token_seconds for served in all_served)
    # Without a match both runs do the same work, and only noise makes them differ.
    faster = f"{uncached / cached:.1f}x" if matched else "-"
    return _line(
        worker,
        name,
        f"{prompt:7,}{sent:8,}{matched:9,}{matched / prompt:6.0%}",
        f"{written_by['A']:7,}{written_by['B']:8,}",
        f"{_milliseconds(cached):>9}{_milliseconds(uncached):>10}{faster:>9}",
    )


def _line(worker: str, name: str, tokens: str, written_by: str, times: str) -> str:
    return (
        f"{worker:6}  {name:22}  {tokens:^30}  {written_by:^15}  {times:^28}".rstrip()
    )


def _rule() -> str:
    return "-" * len(f"{'':6}  {'':22}  {'':30}  {'':15}  {'':28}")


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:,.0f} ms"
