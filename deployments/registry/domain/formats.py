"""Detect the format of a model from its first bytes, never from its name alone.

ONNX has no magic number: it is a protobuf whose first field is the IR version, so the ONNX reader
has to confirm a match.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

HEAD_BYTES: Final = 4096
# The size limit of a protobuf message.
MAX_ONNX_BYTES: Final = 2**31 - 1
# Field 1 (ir_version) as a varint; every ONNX writer emits it first.
_ONNX_FIRST_BYTE: Final = 0x08
_HIGHEST_IR_VERSION: Final = 64
_PICKLE_PROTO: Final = 0x80
_HIGHEST_PICKLE_PROTOCOL: Final = 5
_SEVEN_ZIP: Final = b"7z\xbc\xaf\x27\x1c"
_NUMPY: Final = b"\x93NUMPY"
_HDF5: Final = b"\x89HDF\r\n\x1a\n"
_ZIP: Final = b"PK\x03\x04"
_PICKLE_NAMES: Final = (".pkl", ".pickle", ".joblib", ".pt", ".pth", ".bin", ".ckpt", ".dat")
_ACCEPTED_NAMES: Final = (".onnx", *_PICKLE_NAMES, ".npy", ".npz", ".zip")
_TEXT_PREFIXES: Final = (
    b"<",
    b"{",
    b"#",
    b"[",
    b"%PDF",
    b"\x89PNG",
    b"\xff\xd8\xff",
    b"GIF8",
    b"\x1f\x8b",
)


class ModelFormat(StrEnum):
    ONNX = "onnx"
    PICKLE = "pickle"
    PYTORCH = "pytorch"
    NUMPY = "numpy"
    SAFETENSORS = "safetensors"
    HDF5 = "hdf5"
    SEVEN_ZIP = "7z"
    UNKNOWN = "unknown"


PICKLE_BEARING: Final = frozenset({ModelFormat.PICKLE, ModelFormat.PYTORCH, ModelFormat.NUMPY})


@dataclass(frozen=True, slots=True)
class Advice:
    name: str
    fix: str


_ADVICE: Final = {
    ModelFormat.SAFETENSORS: Advice(
        "safetensors (weights without a graph)",
        "Export the model with its graph: torch.onnx.export(model, example, 'model.onnx').",
    ),
    ModelFormat.HDF5: Advice(
        "HDF5 (Keras)",
        "Convert it: python -m tf2onnx.convert --keras model.h5 --output model.onnx.",
    ),
    ModelFormat.SEVEN_ZIP: Advice(
        "a 7z archive",
        "Unpack it and upload the ONNX file that it contains.",
    ),
    ModelFormat.UNKNOWN: Advice(
        "an unsupported format",
        "Upload an ONNX file: export it with torch.onnx.export, skl2onnx or tf2onnx.",
    ),
}


def advice(kind: ModelFormat) -> Advice:
    """How to convert an unsupported format. Raises KeyError for ONNX and pickles."""
    return _ADVICE[kind]


def is_accepted(kind: ModelFormat) -> bool:
    """Whether files of this format are examined. Pickles are, to report what they would execute."""
    return kind is ModelFormat.ONNX or kind in PICKLE_BEARING


def name_problem(filename: str) -> str:
    """The problem of a file name when the first bytes are missing; empty if it is accepted."""
    if filename.lower().endswith(_ACCEPTED_NAMES):
        return ""
    return (
        f"Unsupported file extension: {filename}. Upload an ONNX file (.onnx), or send the "
        "first bytes of the file in head to detect its format."
    )


def detect(head: bytes, filename: str) -> ModelFormat:
    """`head` is the first HEAD_BYTES of the file."""
    name = filename.lower()
    by_magic = _by_magic(head)
    if by_magic is not None:
        return by_magic
    if _is_pickle(head, name):
        return ModelFormat.PICKLE
    if _is_safetensors(head):
        return ModelFormat.SAFETENSORS
    if _may_be_onnx(head) and not head.startswith(_TEXT_PREFIXES):
        return ModelFormat.ONNX
    return ModelFormat.UNKNOWN


def _by_magic(head: bytes) -> ModelFormat | None:
    if head.startswith(_ZIP):
        return ModelFormat.PYTORCH
    if head.startswith(_SEVEN_ZIP):
        return ModelFormat.SEVEN_ZIP
    if head.startswith(_NUMPY):
        return ModelFormat.NUMPY
    return ModelFormat.HDF5 if head.startswith(_HDF5) else None


def _is_pickle(head: bytes, name: str) -> bool:
    """Protocol 2 and later have a marker; older ones are plain text, so the name decides."""
    if len(head) >= 2 and head[0] == _PICKLE_PROTO and head[1] <= _HIGHEST_PICKLE_PROTOCOL:
        return True
    return name.endswith(_PICKLE_NAMES) and not _may_be_onnx(head)


def _is_safetensors(head: bytes) -> bool:
    return len(head) > 9 and head[8:9] == b"{" and int.from_bytes(head[:8], "little") < 100 * 2**20


def _may_be_onnx(head: bytes) -> bool:
    return len(head) > 2 and head[0] == _ONNX_FIRST_BYTE and 0 < head[1] <= _HIGHEST_IR_VERSION
