"""Pointers of Git LFS in the place of a model, or of a file that it needs."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Final

from deployments.registry.domain.artifacts import files, lfs_pointers
from deployments.registry.domain.artifacts.reading import Artifact
from deployments.registry.domain.formats import hugging_face
from deployments.registry.domain.formats.format import Format

# In a folder, whose files are otherwise not all read: those without extensions have 127 to 144 bytes.
_SIZES_IN_FOLDERS: Final = range(110, 220)
_MOST_READ: Final = 32
# No engine needs them.
_SHOWN_ONLY: Final = (
    *(".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".pdf", ".md", ".ipynb"),
    *(".mp4", ".mp3", ".wav", ".csv", ".parquet"),
)


def _detect(artifact: Artifact) -> str | None:
    paths = list(artifact.sizes)
    if len(paths) > 1:
        if _has_weights_of_a_hub(artifact):
            return None
        sizes = sorted(artifact.sizes.items())
        paths = [path for path, size in sizes if size in _SIZES_IN_FOLDERS and _is_needed(path)]
    return next((p for p in paths[:_MOST_READ] if lfs_pointers.is_pointer(artifact, p)), None)


def _is_needed(path: str) -> bool:
    return not path.lower().endswith(_SHOWN_ONLY) and not files.is_clutter(path)


def _has_weights_of_a_hub(artifact: Artifact) -> bool:
    """Return whether some weights of a Hugging Face folder are no pointers: the reading of such a folder knows
    which others it needs.
    """
    prefix = hugging_face.folder_of_config(artifact)
    return prefix is not None and any(
        size >= lfs_pointers.MAX_BYTES and PurePosixPath(path).parent == PurePosixPath(prefix)
        for path, size in artifact.sizes.items()
        if path.endswith(hugging_face.WEIGHTS)
    )


POINTER: Final = Format(
    key="git_lfs",
    name=lfs_pointers.NAME,
    detect=_detect,
    advice=lfs_pointers.ADVICE,
    is_about_one_file=True,
)
