"""The demo's tables."""

from collections import Counter
from dataclasses import dataclass

from generation import Answer
from workload import Request

COLUMNS = (
    f"{'worker':6}  {'request':22}  {'prompt':>7}  {'matched':>7}  {'':5}  "
    f"{'from A':>7}  {'from B':>7}  {'with':>9}  {'without':>9}  {'faster':>7}"
)
HEADINGS = (
    f"{'':6}  {'':22}  {'--------- tokens ---------':23}  "
    f"{'- computed by -':>16}  {'-- time to first token --':>29}\n{COLUMNS}\n{'-' * len(COLUMNS)}"
)


@dataclass(frozen=True)
class Served:
    """One request, done with and without Pando."""

    worker: str
    request: Request
    answer: Answer
    reference: Answer
    # Matched tokens by the worker that computed them.
    computed_by: Counter[str]


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:,.0f} ms"


def _counts(prompt: int, matched: int, computed_by: Counter[str]) -> str:
    return (
        f"{prompt:7,}  {matched:7,}  {matched / prompt:5.0%}  "
        f"{computed_by['A']:7,}  {computed_by['B']:7,}"
    )


def _times(cached: float, uncached: float) -> str:
    return f"{_milliseconds(cached):>9}  {_milliseconds(uncached):>9}  {uncached / cached:6.1f}x"


def row(served: Served) -> str:
    prompt, matched = len(served.request.prompt), served.answer.matched_tokens
    return (
        f"{served.worker:6}  {served.request.name:22}  "
        f"{_counts(prompt, matched, served.computed_by)}  "
        f"{_times(served.answer.first_token_seconds, served.reference.first_token_seconds)}"
    )


def totals(all_served: list[Served]) -> str:
    prompt = sum(len(served.request.prompt) for served in all_served)
    matched = sum(served.answer.matched_tokens for served in all_served)
    computed_by = sum((served.computed_by for served in all_served), Counter())
    cached = sum(served.answer.first_token_seconds for served in all_served)
    uncached = sum(served.reference.first_token_seconds for served in all_served)
    rule = "-" * len(COLUMNS)
    return (
        f"{rule}\n{'total':6}  {'':22}  "
        f"{_counts(prompt, matched, computed_by)}  {_times(cached, uncached)}"
    )


def prefill(all_served: list[Served]) -> str:
    cached = sum(served.answer.prefill_rows for served in all_served)
    uncached = sum(served.reference.prefill_rows for served in all_served)
    crossed = sum(
        count
        for served in all_served
        for worker, count in served.computed_by.items()
        if worker != served.worker
    )
    return (
        f"prefill  {cached:,} tokens computed, {uncached:,} without Pando; "
        f"{crossed:,} read from pages that the other worker wrote"
    )


def pages(stats) -> str:
    states = ("free", "reserved", "evictable", "protected", "quarantined", "padding")
    parts = " + ".join(f"{getattr(stats.pages, state):,} {state}" for state in states)
    return f"pages    {parts} = {stats.pages.capacity:,}"


def verified(all_served: list[Served]) -> str:
    rows = sum(len(served.answer.logits) for served in all_served)
    tokens = sum(len(served.answer.reply) for served in all_served)
    return (
        f"verified {rows:,} logit rows and {tokens:,} reply tokens bit-equal to the runs without "
        "a cache; prefill fell by exactly the matched tokens; pages add up; invariants hold; "
        "no lock and no reserved page is left"
    )
