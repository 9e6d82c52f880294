"""The formats, in the order in which they are tried, and the detection of an artifact's. The content decides,
never the name alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from deployments.registry.domain.artifacts.reading import Artifact, RememberingArtifact
from deployments.registry.domain.formats import (
    elsewhere,
    forests,
    git_lfs,
    hugging_face,
    onnx,
    openvino,
    pickles,
    saved_model,
    tensorrt,
    tensorrt_llm,
    torchscript,
    triton,
    unsupported,
)
from deployments.registry.domain.formats.format import HEAD_BYTES, Format
from deployments.registry.domain.not_servable import printable
from deployments.spec.domain.engines import ONNX_ENGINES

__all__ = [
    "FORMATS",
    "HEAD_BYTES",
    "Detected",
    "by_key",
    "describe",
    "detect",
    "engines_of",
    "is_declared",
    "is_for_triton",
    "name_problem",
    "servable_names",
]

# Pointers, which stand in the place of any file; folders, because they contain files of other formats; then magic bytes; what has none is last.
FORMATS: Final[Sequence[Format]] = (
    git_lfs.POINTER,
    triton.TRITON,
    triton.TRITON_WITH_CODE,
    tensorrt_llm.ENGINE,
    tensorrt_llm.CHECKPOINT,
    hugging_face.HUGGING_FACE,
    saved_model.SAVED_MODEL,
    openvino.OPENVINO,
    *elsewhere.FOLDERS,
    unsupported.TORCHSERVE,
    unsupported.KERAS,
    unsupported.TORCH_EXPORT,
    torchscript.TORCHSCRIPT,
    pickles.PYTORCH,
    unsupported.TORCH_LEGACY,
    unsupported.TORCH_TAR,
    tensorrt.TENSORRT,
    tensorrt.WITH_METADATA,
    unsupported.SKOPS,
    unsupported.SEVEN_ZIP,
    pickles.NUMPY,
    unsupported.ZIP,
    unsupported.HDF5,
    forests.XGBOOST_JSON,
    forests.XGBOOST_UBJ,
    forests.LIGHTGBM,
    forests.TREELITE,
    forests.XGBOOST_BINARY,
    forests.XGBOOST_SNAPSHOT,
    unsupported.SAFETENSORS,
    *elsewhere.FILES,
    pickles.PICKLE,
    onnx.ONNX,
    unsupported.UNKNOWN_FOLDER,
    unsupported.UNKNOWN,
)
_BY_KEY: Final = {kind.key: kind for kind in FORMATS}


@dataclass(frozen=True, slots=True)
class Detected:
    """The detected format of an artifact. `main` is the path of the main file; empty for the whole artifact."""

    format: Format
    main: str

    def describe_refusal(self, name: str) -> str:
        """Say why the artifact of this name is not accepted, with the fix."""
        subject = name
        if self.format.is_about_one_file and PurePosixPath(self.main).name != name:
            subject = f"{printable(self.main)} in {name}"
        verb = "are" if subject.endswith(" files") and subject == name else "is"
        return f"{subject} {verb} {self.format.name}. {self.format.advice}"


def detect(artifact: Artifact) -> Detected:
    """Detect the format of an artifact. Reads the first HEAD_BYTES bytes of a few files, each once for all
    formats.
    """
    remembering = RememberingArtifact(artifact)
    for kind in FORMATS:
        main = kind.detect(remembering)
        if main is not None:
            return Detected(kind, main)
    raise AssertionError("UNKNOWN matches every artifact")


def by_key(key: str) -> Format:
    """Return the format with the key. Raises KeyError."""
    return _BY_KEY[key]


def describe(key: str) -> str:
    """Return the name of the format in the column `format`. Empty before it was detected."""
    return _BY_KEY[key].name if key else ""


def engines_of(key: str) -> tuple[str, ...]:
    """Return the engines that load a version of the format; those of Triton before it was detected."""
    return _BY_KEY[key].engines if key in _BY_KEY else ONNX_ENGINES


def is_for_triton(key: str) -> bool:
    return key not in _BY_KEY or _BY_KEY[key].is_for_triton


def is_declared(key: str) -> bool:
    """Whether the uploader declares inputs and outputs of the format."""
    return key in _BY_KEY and _BY_KEY[key].is_declared


def servable_names() -> list[str]:
    """Return the names of the formats that can become ready; others are refused or quarantined."""
    readable = (kind for kind in FORMATS if kind.reading is not None or kind is onnx.ONNX)
    return [kind.listed_as or kind.name for kind in readable if kind.is_accepted]


def name_problem(path: str) -> str:
    """Return the problem of a file name when the first bytes are missing. Empty if it is accepted."""
    endings = [ending for kind in FORMATS if kind.is_accepted for ending in kind.endings]
    if path.lower().endswith(tuple(endings)):
        return ""
    return (
        f"Unsupported file extension: {path}. Upload an ONNX file (.onnx) or a model of XGBoost "
        "(.json, .ubj), or send the first bytes of the file in head to detect its format, as for "
        "LightGBM (.txt)."
    )
