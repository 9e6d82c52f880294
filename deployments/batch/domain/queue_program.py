"""The program of a queue worker's pod: start Triton, then answer messages until none is left (queue_worker.py).

It travels as the text of a command (program.py), so it has the standard library only and runs on Python 3.9 and newer.
What a kind of queue imports besides comes by its library (sources/library.py); botocore needs Python 3.10.
SLIPWAY_BATCH is the plan, SLIPWAY_CHUNKS_0 the address of the list of addresses (worker_outbox.py).
Exit codes as worker_program.py has them.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

from deployments.batch.domain.queue_worker import QueueConsumer
from deployments.batch.domain.sources.message import QueueError
from deployments.batch.domain.worker_outbox import Outbox
from deployments.batch.domain.worker_server import Server
from deployments.batch.domain.worker_store import DETAIL_LENGTH, WorkerEnded, pause


def keep_held(consumer: QueueConsumer, seconds: float) -> None:
    while True:
        pause(seconds)
        # A queue that is away says so where it is used.
        with contextlib.suppress(WorkerEnded, OSError, QueueError, http.client.HTTPException):
            consumer.keep_held()


def consume(open_source: Any, command: list[str], folder: Path) -> tuple[int, str]:
    """Answer messages until none is left; return the exit code and why.

    `open_source` makes a source from the plan's part for it and the name of this worker.
    """
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    plan = json.loads(os.environ["SLIPWAY_BATCH"])
    server = None
    try:
        outbox = Outbox(os.environ["SLIPWAY_CHUNKS_0"], stopping)
        if "library" in plan["source"]:
            outbox.load_library(plan["source"]["library"], folder)
        source = open_source(plan["source"], os.environ["SLIPWAY_CONSUMER"])
        if time.time() >= plan["until"] or source.depth() == (0, 0):
            # Another worker was faster: then no model is loaded.
            return 0, ""
        source.prepare()
        server = Server(command, plan, folder)
        server.wait_until_ready(stopping)
        consumer = QueueConsumer(plan, source, outbox, server, stopping)
        keeper = threading.Thread(
            target=keep_held, args=(consumer, plan["redelivery"] / 3), daemon=True
        )
        keeper.start()
        consumer.run()
    except WorkerEnded as end:
        # Stopped while the model loaded: nothing was taken.
        return (0, "") if stopping.is_set() else (end.code, end.detail)
    except QueueError as error:
        return 1, f"the queue refuses a command: {error}"[:DETAIL_LENGTH]
    except (OSError, ValueError, KeyError, http.client.HTTPException) as error:
        return 1, f"the program of the worker failed: {type(error).__name__}: {error}"
    finally:
        if server is not None:
            server.stop()
    return 0, ""
