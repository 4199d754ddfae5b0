"""A check of an engine whose pandod has ended, together with its pool."""

import pytest
from engines.engine_process import EngineDied, EngineProcess

MOST_STEPS = 400


def stops_without_a_wrong_token(
    engine: EngineProcess, request: str | int, expected: list[int]
) -> None:
    """Runs the engine until it stops, and compares its tokens with `expected`.

    The caller has restarted the engine's pandod before."""
    with pytest.raises(EngineDied):
        for _ in range(MOST_STEPS):
            engine.ask(step=1)
            said = engine.ask(output=request)["output"]
            assert said == expected[: len(said)]
    assert "the session with pandod is lost" in engine.log()
    assert "Restart the engine." in engine.log()
