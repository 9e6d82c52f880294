"""Rules for the graph of a SavedModel: operations that reach files or Python on the server.

Messages: tensorflow/core/framework/{graph,function,node_def}.proto.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import IO, Final

from deployments.registry.domain.saved_model.wire import Malformed, WireMessage
from deployments.registry.domain.scanning.findings import Findings

_GRAPH: Final = "saved_model.pb"
# Saving and restoring variables is part of every SavedModel, and not among them.
_UNSAFE: Final = frozenset(
    {
        *("ReadFile", "WriteFile", "MatchingFiles"),
        *("PyFunc", "PyFuncStateless", "EagerPyFunc"),
    }
)


def applies_to(name: str) -> bool:
    return PurePosixPath(name).name == _GRAPH


def scan(file: IO[bytes], size: int, findings: Findings) -> None:
    try:
        operations = set(_operations(WireMessage(file, 0, size)))
    except Malformed as error:
        findings.cannot_read(f"the graph is damaged: {error}")
        return
    for name in sorted(operations & _UNSAFE):
        findings.runs(f"the operation {name} of TensorFlow")


def _operations(model: WireMessage) -> Iterator[str]:
    """Yield the operations of the graph itself and of its functions."""
    for meta_graph in model.messages(2):
        for graph in meta_graph.messages(2):
            for node in graph.messages(1):
                yield from node.texts(2)
            for library in graph.messages(2):
                for function in library.messages(1):
                    for node in function.messages(3):
                        yield from node.texts(2)
