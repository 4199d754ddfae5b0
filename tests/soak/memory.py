"""A check that pandod's memory is flat under the same load."""

from statistics import median

# The check compares the medians of these parts of the samples, in order of time.
BEFORE = (0.3, 0.5)
AFTER = (0.8, 1.0)
# The allocator keeps the memory of a burst. A leak of one small object per request
# grows far beyond this limit within minutes.
MAX_GROWTH_KIB = 1024
# A shorter record is not judged, because pandod is still warming up.
MIN_SECONDS = 120


class MemoryRecord:
    """The memory samples of one process: the time in seconds, and KiB."""

    def __init__(self) -> None:
        self._samples: list[tuple[float, int]] = []

    def add(self, now: float, kib: int) -> None:
        self._samples.append((now, kib))

    def grown(self) -> list[str]:
        if self._seconds < MIN_SECONDS or self._after - self._before <= MAX_GROWTH_KIB:
            return []
        return [f"memory grew by more than {MAX_GROWTH_KIB} KiB: {self}"]

    def __str__(self) -> str:
        judged = "" if self._seconds >= MIN_SECONDS else " (too short to judge)"
        return f"memory: {self._before:.0f} KiB, later {self._after:.0f} KiB{judged}"

    @property
    def _seconds(self) -> float:
        return self._samples[-1][0] - self._samples[0][0]

    @property
    def _before(self) -> float:
        return self._median(*BEFORE)

    @property
    def _after(self) -> float:
        return self._median(*AFTER)

    def _median(self, begin: float, end: float) -> float:
        count = len(self._samples)
        window = self._samples[int(begin * count) : int(end * count)]
        return median(kib for _, kib in window)
