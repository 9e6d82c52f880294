"""The program of a batch worker's pod as one text: its modules, of which each has the standard library only."""

from __future__ import annotations

import ast
from pathlib import Path
from types import ModuleType
from typing import Final

from deployments.batch.domain import csv_rows, worker_program, worker_store

_FUTURE: Final = "from __future__ import annotations\n"


def _body(module: ModuleType) -> str:
    """Without its imports of modules of ours and of the future."""
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


TEXT: Final = _FUTURE + "".join(map(_body, (csv_rows, worker_store, worker_program)))
