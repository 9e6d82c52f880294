"""Pointers of Git LFS: small texts that a clone has in the place of large files, until `git lfs pull` gets them.

Format: git-lfs/git-lfs, docs/spec.md: a text of less than 1024 bytes whose first line is the version; the two other
addresses are those of older releases.
"""

from __future__ import annotations

import re
from typing import Final

from deployments.registry.domain.artifacts.reading import Artifact

# slipway_client/uploads/git_lfs.py tells the same before anything is sent.
_POINTER: Final = re.compile(
    rb"(?:\xef\xbb\xbf)?version https?://"
    rb"(?:git-lfs\.github\.com/spec|hawser\.github\.com/spec|git-media\.io)/v/?\d"
)
_HEAD_BYTES: Final = 80
MAX_BYTES: Final = 1024
NAME: Final = "a Git LFS pointer, not the model"
ADVICE: Final = "Get the file itself with git lfs pull in the clone, and upload it again."


def is_pointer(artifact: Artifact, path: str) -> bool:
    size = artifact.sizes[path]
    if size >= MAX_BYTES:
        return False
    return _POINTER.match(artifact.read(path, 0, min(size, _HEAD_BYTES))) is not None
