"""ONNX: one file, or a graph with external data in files beside it.

A protobuf without a magic number, whose first field is the IR version. Its reader has to confirm a match (deployments/registry/domain/onnx.py).
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Final

from deployments.registry.domain.artifacts import files
from deployments.registry.domain.artifacts.reading import Artifact
from deployments.registry.domain.formats.format import Format, head_of
from deployments.registry.domain.object_keys import CONFIG_FILE

# The size limit of a protobuf message.
MAX_BYTES: Final = 2**31 - 1
# Field 1 (ir_version) as a varint; every ONNX writer emits it first.
_FIRST_BYTE: Final = 0x08
_HIGHEST_IR_VERSION: Final = 64


def may_be_onnx(head: bytes) -> bool:
    return len(head) > 2 and head[0] == _FIRST_BYTE and 0 < head[1] <= _HIGHEST_IR_VERSION


def _local_path(path: str, main: str) -> str:
    """Return the path of the copy on disk. ONNX Runtime selects the reader by extension, and has another one
    for .ort.
    """
    is_named_otherwise = path == main and not path.lower().endswith(".onnx")
    return f"{path}.onnx" if is_named_otherwise else path


def folder_of(main: str) -> str:
    """Return the folder of the graph's file, with "/". Empty at the top."""
    return f"{main.rpartition('/')[0]}/" if "/" in main else ""


def graphs_of(artifact: Artifact) -> list[str]:
    """Return paths of files that are named as ONNX."""
    paths = (path for path in artifact.sizes if not files.is_clutter(path))
    return [path for path in paths if path.lower().endswith(".onnx")]


def _detect(artifact: Artifact) -> str | None:
    """Detect one file, or a folder with one graph beside the files of its weights."""
    if len(artifact.sizes) == 1:
        path = next(iter(artifact.sizes))
        return path if may_be_onnx(head_of(artifact, path)) else None
    names = {PurePosixPath(path).name for path in artifact.sizes}
    graphs = graphs_of(artifact)
    if len(graphs) != 1 or CONFIG_FILE in names:
        return None
    return graphs[0] if may_be_onnx(head_of(artifact, graphs[0])) else None


ONNX: Final = Format(
    key="onnx",
    name="ONNX",
    detect=_detect,
    endings=(".onnx",),
    is_read_locally=True,
    local_path=_local_path,
)
