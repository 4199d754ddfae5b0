"""The demo's requests, which share prefixes like a chat and questions on a document."""

from itertools import pairwise
from pathlib import Path

import numpy as np
from model import ModelConfig
from workload import END, CachedPrefix, Request, requests

DATA = Path(__file__).parents[2] / "examples" / "data"
CACHED = CachedPrefix(None, np.arange(3, dtype=np.uint32))
REPLY = np.array([7, 8, END], dtype=np.uint32)


def all_requests() -> list[Request]:
    workload = requests(DATA)
    result = [next(workload)]
    try:
        while True:
            result.append(workload.send((REPLY, CACHED)))
    except StopIteration:
        return result


def test_each_turn_of_the_chat_continues_the_turn_before_and_its_reply():
    turns = all_requests()[:4]
    for before, turn in pairwise(turns):
        history = np.append(before.prompt, REPLY)
        assert np.array_equal(turn.prompt[: len(history)], history)
        assert len(turn.prompt) > len(history)
        assert turn.after is CACHED
    assert turns[0].after is None


def test_questions_share_the_document_after_the_system_prompt():
    questions = all_requests()[4:8]
    shared = sum(
        (DATA / name).stat().st_size for name in ("system.txt", "document.txt")
    )
    first = questions[0].prompt
    for question in questions[1:]:
        assert np.array_equal(question.prompt[:shared], first[:shared])
        assert not np.array_equal(question.prompt, first)


def test_the_last_request_is_the_last_turn_again():
    *_, last = workload = all_requests()
    assert np.array_equal(last.prompt, workload[3].prompt)


def test_every_token_is_in_the_vocabulary():
    for request in all_requests():
        assert request.prompt.dtype == np.uint32
        assert request.prompt.max() < ModelConfig().vocabulary
