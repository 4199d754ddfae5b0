"""A program that imports SGLang once, and forks an engine for each client.

usage: zygote.py '{"socket": PATH, "models": [MODULE, ...]}'

The modules are those of SGLang's models. A client (forked_engine.py) sends its standard
streams and a line of JSON, {"arguments": ..., "environment": {...}}. The fork runs
engine.py with these, and the zygote answers with its exit code.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import traceback
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))
os.environ["SGLANG_USE_CPU_ENGINE"] = "1"


def main() -> None:
    given = json.loads(sys.argv[1])
    from engines.sglang import engine
    from engines.sglang.start import models_but_for

    os.environ["SGLANG_DISABLED_MODEL_ARCHS"] = ",".join(
        models_but_for(*given["models"])
    )
    import sglang.srt.managers.scheduler
    import sglang.srt.models.registry  # noqa: F401

    # The kernel reaps the children.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(given["socket"])
    listener.listen(16)
    print("@@" + json.dumps({"ready": True}), flush=True)
    while True:
        asking, _ = listener.accept()
        line, streams, _, _ = socket.recv_fds(asking, 1 << 16, 3)
        if os.fork() == 0:
            listener.close()
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
                os.close(stream)
            os._exit(run(engine, asking, json.loads(line)))
        for stream in streams:
            os.close(stream)
        asking.close()


def run(engine, asking: socket.socket, asked: dict) -> int:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.environ.update(asked["environment"])
    sys.argv[1:] = [json.dumps(asked["arguments"])]
    sys.stdin, sys.stdout = open(0), open(1, "w", buffering=1)
    code = 0
    try:
        engine.main()
    except BaseException:
        traceback.print_exc()
        code = 1
    asking.sendall(b"%d\n" % code)
    return code


if __name__ == "__main__":
    main()
