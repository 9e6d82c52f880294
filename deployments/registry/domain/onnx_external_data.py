"""Tensors of an ONNX model whose bytes lie in other files, beside the file of the graph.

Format: onnx/onnx, docs/ExternalData.md: `location` is a path relative to the graph's folder, `offset` and
`length` are decimal numbers; without them a tensor begins at 0 and ends with the file. ONNX Runtime maps them
into memory, so nothing may point behind the end of a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import onnx

from deployments.registry.domain import onnx_graphs
from deployments.registry.domain.not_servable import NotServable, quote

_MAX_DIGITS: Final = 18
_ADVICE: Final = (
    "Save the model again: onnx.save_model(model, 'model.onnx', save_as_external_data=True, "
    "location='model.onnx.data'), and upload both files."
)


def is_external(tensor: Any) -> bool:
    return bool(tensor.data_location == onnx.TensorProto.EXTERNAL or tensor.external_data)


def locate(model: Any, files: Mapping[str, int]) -> tuple[str, ...]:
    """Return the files that hold tensors, sorted. `files` are the bytes by path of those below the graph's
    folder, without the graph. Raises NotServable for what is not inside them.
    """
    used = set()
    for tensor in onnx_graphs.tensors(model):
        if is_external(tensor):
            used.add(_locate(tensor, files))
    return tuple(sorted(used))


def _locate(tensor: Any, files: Mapping[str, int]) -> str:
    entries = [(entry.key, entry.value) for entry in tensor.external_data]
    fields = dict(entries)
    if len(fields) != len(entries) or not all(isinstance(text, str) for text in fields.values()):
        raise NotServable(f"{quote(tensor.name)} describes its file twice. {_ADVICE}")
    path = _path_of(fields.get("location", ""))
    if path not in files:
        raise NotServable(
            f"The weights are in other files ({quote(path)}), which the upload does not have next to the "
            "model. Upload the whole folder, or save the model as one file: "
            "onnx.save_model(onnx.load('model.onnx'), 'single.onnx', save_as_external_data=False)."
        )
    size = files[path]
    offset = _number(tensor, fields.get("offset", "0"))
    length = _number(tensor, fields["length"]) if "length" in fields else size - offset
    if length < 0 or offset + length > size:
        raise NotServable(
            f"{quote(tensor.name)} ends at byte {offset + max(length, 0):,} of {quote(path)}, which has "
            f"{size:,}. The file is damaged or cut off. {_ADVICE}"
        )
    return path


def _path_of(location: str) -> str:
    """Return the path below the graph's folder, as the files of an artifact are named."""
    parts = [part for part in location.split("/") if part != "."]
    is_inside = location and "\\" not in location and ":" not in location
    if not is_inside or any(part in ("", "..") for part in parts):
        raise NotServable(
            f"A tensor's bytes are in {quote(location) if location else 'a file without a name'}, which "
            f"is not inside the folder of the model. {_ADVICE}"
        )
    return "/".join(parts)


def _number(tensor: Any, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS):
        raise NotServable(
            f"{quote(tensor.name)} begins or ends at {quote(text)}, which is not a position in a file. "
            f"{_ADVICE}"
        )
    return int(text)


def total_bytes(paths: Iterable[str], files: Mapping[str, int]) -> int:
    return sum(files[path] for path in paths)
