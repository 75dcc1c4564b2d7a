"""A process that runs chunks: `python -m perframe.processing.worker`. It reads JSON lines and answers with such lines.

The settings come first. {"first": 0, "stop": 240} asks for a chunk: {"done": 17} reports each picture, and
{"finished": 0} or {"error": "..."} the end. It ends with its standard input, also in the middle of a chunk.
"""

from __future__ import annotations

import json
import os
import sys
from queue import Queue
from threading import Thread
from typing import Any

from perframe.errors import PerframeError
from perframe.processing.chunks import Runner
from perframe.processing.settings import Chunk, Settings


def main() -> None:
    """Answer until the standard input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a script prints is no answer
    requests: Queue[dict[str, Any]] = Queue()
    settings = Settings.from_json(sys.stdin.readline())
    Thread(target=_read, args=(requests,), daemon=True).start()

    def answer(**values: Any) -> None:
        answers.write(json.dumps(values) + "\n")
        answers.flush()

    try:
        runner = Runner(settings)
        while True:
            chunk = Chunk(**requests.get())
            runner.run(chunk, lambda index: answer(done=index))
            answer(finished=chunk.first)
    except (PerframeError, OSError) as error:
        answer(error=str(error))
        os._exit(1)  # whatever threads there are


def _read(requests: Queue[dict[str, Any]]) -> None:
    """Read requests, in a thread. The parent's end is this process's, too."""
    for line in sys.stdin:
        requests.put(json.loads(line))
    os._exit(0)


if __name__ == "__main__":
    main()
