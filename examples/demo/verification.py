"""Checks after each request and at the end; each fault is a sentence."""

import numpy as np
from generation import Answer
from model import Tokens
from workload import Request


class ExpectedMatches:
    """The tokens of a prompt that the cache must know, from what was published before.

    The expectation is exact, because the demo evicts nothing.
    """

    def __init__(self, page_tokens: int) -> None:
        self._page_tokens = page_tokens
        self._published: list[Tokens] = []

    def expect(self, prompt: Tokens) -> int:
        common = max(
            (_common_prefix(prompt, known) for known in self._published), default=0
        )
        return min(common, len(prompt) - 1) // self._page_tokens * self._page_tokens

    def add(self, request: Request, answer: Answer) -> None:
        computed = np.concatenate((request.prompt, answer.reply[:-1]))
        whole_pages = len(computed) // self._page_tokens * self._page_tokens
        self._published.append(computed[:whole_pages])


def _common_prefix(one: Tokens, other: Tokens) -> int:
    length = min(len(one), len(other))
    differs = one[:length] != other[:length]
    return int(differs.argmax()) if differs.any() else length


def matching_faults(request: Request, answer: Answer, expected: int) -> list[str]:
    faults = []
    if answer.matched_tokens != expected:
        faults.append(
            f"{request.name}: matched {answer.matched_tokens} tokens, not {expected}"
        )
    rest = len(request.prompt) - answer.matched_tokens
    if answer.prefill_rows != rest:
        faults.append(
            f"{request.name}: prefill computed {answer.prefill_rows} rows, not {rest}"
        )
    return faults


def bit_faults(request: Request, answer: Answer, reference: Answer) -> list[str]:
    """Compares each token and each computed logit row with the run without a cache."""
    if answer.reply.tobytes() != reference.reply.tobytes():
        where = _common_prefix(answer.reply, reference.reply)
        return [
            f"{request.name}: reply token {where} differs from the run without a cache"
        ]
    expected = reference.logits[answer.matched_tokens :]
    if answer.logits.shape != expected.shape:
        return [f"{request.name}: {len(answer.logits)} logit rows, not {len(expected)}"]
    differs = (answer.logits.view(np.uint32) != expected.view(np.uint32)).any(axis=1)
    if not differs.any():
        return []
    row = answer.matched_tokens + int(differs.argmax())
    return [
        f"{request.name}: {differs.sum()} of {len(differs)} logit rows differ from the "
        f"run without a cache, the first at position {row}"
    ]


def cache_faults(stats, violations: list[str]) -> list[str]:
    """Checks the cache at rest: its pages must sum up, and no request may have left
    locks or pages behind."""
    faults = [f"invariant violated: {violation}" for violation in violations]
    pages = stats.pages
    total = (
        pages.free
        + pages.reserved
        + pages.evictable
        + pages.protected
        + pages.quarantined
        + pages.padding
    )
    if total != pages.capacity:
        faults.append(
            f"pages by state sum to {total}, not to the capacity of {pages.capacity}"
        )
    if stats.locks:
        faults.append(f"{stats.locks} locks are left")
    for state in ("reserved", "protected", "quarantined"):
        if count := getattr(pages, state):
            faults.append(f"{count} pages are left {state}")
    return faults
