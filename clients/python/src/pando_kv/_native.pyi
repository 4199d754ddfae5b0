from typing import Any

import numpy as np
import numpy.typing as npt

SMALL_ANSWER_BYTES: int
PAGE_ANSWER_BYTES: int
SCORE_ANSWER_BYTES: int

_Numbers = npt.NDArray[np.uint64]

class Codec:
    def __init__(
        self, fields: list[tuple[str, int, str, bool, Codec | None]]
    ) -> None: ...
    def encode(self, values: tuple[Any, ...]) -> bytes: ...
    def decode(self, data: bytes) -> tuple[Any, ...]: ...

class PendingCall:
    def wait(self, timeout: float) -> tuple[Any, ...] | bytes | None: ...
    def ready(self, timeout: float) -> bool: ...
    def done(self) -> bool: ...
    def wake_lane(self) -> bool: ...
    def take_error(self) -> BaseException | None: ...

class Lane:
    def __init__(self, memory: int, doorbell: int) -> None: ...
    def call(
        self,
        method: int,
        request: Codec,
        values: tuple[Any, ...],
        answer_bytes: int,
        response: Codec,
        timeout: float,
    ) -> tuple[Any, ...] | bytes | PendingCall | None: ...
    def prepare(
        self,
        method: int,
        request: Codec,
        values: tuple[Any, ...],
        answer_bytes: int,
        response: Codec,
    ) -> PendingCall | None: ...
    def submit(self, calls: list[PendingCall]) -> None: ...
    def close(self) -> None: ...
    @property
    def closed(self) -> bool: ...
    @property
    def answers(self) -> int: ...
    def await_answers(self, seen: int, timeout: float) -> None: ...

class BegunInsert:
    def result(self, timeout: float) -> Any:
        """Gives the same as RequestCalls.insert. To be called once."""

class RequestCalls:
    """Each gives its result, None or a Begun; see request_calls.h."""

    def __init__(
        self,
        lane: Lane,
        sessions: Any,
        session: Any,
        results: Any,
        begun: Any,
        responses: dict[int, Codec],
    ) -> None: ...
    def match_prefix(
        self,
        timeout: float,
        make_lock: Any,
        tokens: Any,
        namespace: Any,
        after: Any,
        max_tokens: Any,
        lock: Any,
        reserve_tokens: Any,
        touch: Any,
        pending_wait: Any,
        load: Any,
        /,
    ) -> Any: ...
    def insert(
        self,
        timeout: float,
        tokens: Any,
        page_ids: Any,
        namespace: Any,
        after: Any,
        lock: Any,
        relock: Any,
        unlock: Any,
        keep_duplicates: Any,
        free_page_ids: Any,
        generation: Any,
        prompt_tokens: Any,
        priority: Any,
        output_tokens: Any,
        expected_reuse: Any,
        retain_seconds: Any,
        /,
    ) -> Any: ...
    def begin_insert(self, *arguments: Any) -> BegunInsert | None:
        """Takes those of insert but the timeout."""

    def allocate_pages(
        self, timeout: float, pages: Any, at_least: Any, namespace: Any, /
    ) -> Any: ...
    def free_pages(self, timeout: float, page_ids: Any, generation: Any, /) -> Any: ...
    def unlock(self, timeout: float, session: Any, locks: list[Any], /) -> Any: ...

class Gauges:
    def __init__(self, memory: int) -> None: ...
    def read(self) -> tuple[Any, ...] | None: ...

def as_uint32(values: Any) -> npt.NDArray[np.uint32] | None: ...
def copy(targets: _Numbers, sources: _Numbers, sizes: _Numbers) -> None: ...

class CudaCopier:
    def __init__(self, device: int) -> None: ...
    def copy(
        self, targets: _Numbers, sources: _Numbers, sizes: _Numbers, to_device: bool
    ) -> None: ...
    def pin(self, address: int, size: int) -> None: ...
    def unpin(self, address: int) -> None: ...
    @property
    def is_batched(self) -> bool: ...
