"""The programs of batch pods as one text each: their modules, of which each has the standard library only, and a queue's its library."""

from __future__ import annotations

import ast
from pathlib import Path
from types import ModuleType
from typing import Final

from deployments.batch.domain import (
    csv_rows,
    queue_program,
    queue_worker,
    worker_end,
    worker_outbox,
    worker_program,
    worker_server,
    worker_store,
)
from deployments.batch.domain.sources import message, requests
from deployments.batch.domain.sources.interface import QueueKind

_FUTURE: Final = "from __future__ import annotations\n"


def _body(module: ModuleType) -> str:
    """Return the module's text without imports of modules of the portal and of the future."""
    text = Path(str(module.__file__)).read_text()
    lines = text.splitlines()
    for node in ast.parse(text).body:
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith(
            ("deployments.", "__future__")
        ):
            lines[node.lineno - 1 : node.end_lineno] = [""] * (
                (node.end_lineno or node.lineno) - node.lineno + 1
            )
    return "\n".join(lines) + "\n"


_SHARED: Final = (csv_rows, worker_store, worker_end, worker_server)
TEXT: Final = _FUTURE + "".join(map(_body, (*_SHARED, worker_program)))


def queue_text(kind: QueueKind) -> str:
    """Return the program of queue workers, with the worker's half of this kind only."""
    modules = (
        *_SHARED,
        message,
        *kind.modules,
        requests,
        worker_outbox,
        queue_worker,
        queue_program,
    )
    end = f"""
if __name__ == "__main__":
    run_and_exit(lambda command, folder: consume({kind.source_class}, command, folder))
"""
    return _FUTURE + "".join(map(_body, modules)) + end
