"""Prompts, and pages published for them."""

import numpy as np
import numpy.typing as npt
from pando_kv import Client, Insert, Namespace, PrefixHandle
from pandod_process import PAGE_TOKENS

Tokens = npt.NDArray[np.uint32]


def prompt(pages: int, start: int = 0) -> Tokens:
    """Returns tokens that count up; another start gives other tokens."""
    return np.arange(start, start + pages * PAGE_TOKENS, dtype=np.uint32)


def admit_and_publish(
    client: Client,
    tokens: Tokens,
    after: PrefixHandle | None = None,
    namespace: Namespace | None = None,
) -> Insert:
    """Runs a request from admission to publication; its prompt ends a whole page."""
    bigram = namespace is not None and namespace.bigram
    units = max(0, len(tokens) - bigram)
    match = client.match_prefix(
        tokens, namespace=namespace, after=after, lock=True, reserve_tokens=units
    )
    return client.insert(
        tokens[match.matched_tokens :],
        match.reserved_page_ids,
        lock=match.lock,
        unlock=True,
    )
