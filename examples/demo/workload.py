"""The demo's prompts: a chat of several turns, and questions about a document.

All requests share one system prompt. A byte of text is a token; four more tokens mark
the roles.
"""

from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pando_kv
from model import Tokens
from paged_kv import PageIds

SYSTEM, USER, ASSISTANT, END = range(256, 260)

REPLY_TOKENS = 24


@dataclass(frozen=True)
class CachedPrefix:
    """The cached part of a turn. The next turn may begin after it, in any worker."""

    handle: pando_kv.PrefixHandle | None
    pages: PageIds


@dataclass(frozen=True)
class Request:
    name: str
    prompt: Tokens
    max_new_tokens: int = REPLY_TOKENS
    # The prefix of the prompt that the turn before has left in the cache, if any.
    after: CachedPrefix | None = None


class Conversation:
    def __init__(self, system: bytes) -> None:
        self._tokens = [SYSTEM, *system, END]

    def ask(self, text: bytes) -> Tokens:
        """Adds `text` and returns the prompt that asks for a reply to it."""
        self._tokens += [USER, *text, END, ASSISTANT]
        return np.array(self._tokens, dtype=np.uint32)

    def hear(self, reply: Tokens) -> None:
        self._tokens += reply.tolist()
        if self._tokens[-1] != END:
            self._tokens.append(END)


def requests(
    data: Path,
) -> Generator[Request, tuple[Tokens, CachedPrefix | None], None]:
    """Yields the requests in order. The caller sends back the reply to each request,
    and the prefix that the request left in the cache."""
    system = (data / "system.txt").read_bytes()
    document = (data / "document.txt").read_bytes()

    chat, cached = Conversation(system), None
    for turn, text in enumerate(
        (data / "chat.txt").read_bytes().strip().split(b"\n\n"), start=1
    ):
        prompt = chat.ask(text)
        reply, cached = yield Request(f"chat, turn {turn}", prompt, after=cached)
        chat.hear(reply)

    questions = (data / "questions.txt").read_bytes().splitlines()
    for number, question in enumerate(questions, start=1):
        text = document + b"\n" + question
        yield Request(f"document, question {number}", Conversation(system).ask(text))

    yield Request(f"chat, turn {turn} once more", prompt)
