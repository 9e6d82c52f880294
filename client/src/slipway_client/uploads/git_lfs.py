"""Pointers of Git LFS, which a clone has in the place of large files until `git lfs pull` gets them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Final

from slipway_client.errors import InvalidInput
from slipway_client.uploads.local_files import LocalFile

_POINTER: Final = re.compile(
    rb"(?:\xef\xbb\xbf)?version https?://"
    rb"(?:git-lfs\.github\.com/spec|hawser\.github\.com/spec|git-media\.io)/v/?\d"
)
_MAX_BYTES: Final = 1024
_WEIGHTS: Final = (
    *(".onnx", ".safetensors", ".bin", ".pt", ".pth", ".gguf", ".h5", ".keras", ".pb", ".ckpt"),
    *(".plan", ".engine", ".trt", ".joblib", ".pkl", ".ubj", ".data", ".tl", ".npz"),
)


def refuse_pointers(files: Sequence[LocalFile]) -> None:
    """Raise InvalidInput if all files with weights are pointers. The portal knows which others it needs."""
    weights = [file for file in files if file.path.lower().endswith(_WEIGHTS)] or list(files)
    if not weights or not all(is_pointer(file) for file in weights):
        return
    rest = f" and {len(weights) - 1:,} more" if len(weights) > 1 else ""
    verb = "are Git LFS pointers" if rest else "is a Git LFS pointer"
    name = PurePosixPath(weights[0].path).name
    raise InvalidInput(
        f"{name}{rest} {verb}, not the model. Get the files with git lfs pull, and push again."
    )


def is_pointer(file: LocalFile) -> bool:
    if file.size_bytes >= _MAX_BYTES:
        return False
    return _POINTER.match(next(file.chunks(), b"")) is not None
