"""The files of an artifact: their paths, and the digest that identifies all of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final

MAX_FILES: Final = 2000
MAX_PATH_BYTES: Final = 512
MAX_NAME_LENGTH: Final = 200
# static/js/upload/choosing.js and the client leave out the same.
_CLUTTER: Final = frozenset(
    {
        *(".git", "__pycache__", ".ipynb_checkpoints", "__MACOSX"),
        *(".DS_Store", "Thumbs.db", "desktop.ini"),
    }
)
# Beside each file that macOS writes to a disk of another system.
_APPLE_DOUBLE: Final = "._"


def identity(sha256_by_path: Mapping[str, str]) -> str:
    """Return the SHA-256 that identifies the files: of one file its own, of several that of what `sha256sum`
    prints for them, by path.

    In the folder: find . -type f -printf '%P\\n' | LC_ALL=C sort | xargs sha256sum | sha256sum
    """
    if len(sha256_by_path) == 1:
        return next(iter(sha256_by_path.values()))
    by_bytes = sorted(sha256_by_path.items(), key=lambda item: item[0].encode())
    lines = "".join(f"{sha256}  {path}\n" for path, sha256 in by_bytes)
    return hashlib.sha256(lines.encode()).hexdigest()


def is_clutter(path: str) -> bool:
    """Whether file managers, archivers or version control left it, so that it belongs to no model."""
    parts = path.split("/")
    return not _CLUTTER.isdisjoint(parts) or parts[-1].startswith(_APPLE_DOUBLE)


def display_name(paths: Sequence[str]) -> str:
    """Return the name of the one file, or of the folder that contains all; otherwise their count."""
    if len(paths) == 1:
        return PurePosixPath(paths[0]).name[:MAX_NAME_LENGTH]
    return (common_folder(paths) or f"{len(paths):,} files")[:MAX_NAME_LENGTH]


def common_folder(paths: Iterable[str]) -> str:
    """Return the top folder that contains all files, without "/". Empty if there is none."""
    tops = {path.partition("/")[0] if "/" in path else "" for path in paths}
    return tops.pop() if len(tops) == 1 else ""


def without_common_folders(paths: Sequence[str]) -> tuple[str, dict[str, str]]:
    """Return the folders that contain all files ("" or ending with "/"), and each path by its rest."""
    prefix = ""
    while top := common_folder([path.removeprefix(prefix) for path in paths]):
        prefix += f"{top}/"
    return prefix, {path.removeprefix(prefix): path for path in paths}


def path_problem(path: str) -> str:
    """Return the problem of a path and its fix. Empty if it is accepted."""
    if not path.strip():
        return "Enter the path of the file, for example 'detector.onnx'."
    if not path.isprintable():
        return f"The path {path[:80]!r} contains a control character. Rename the file."
    if len(path.encode(errors="replace")) > MAX_PATH_BYTES:
        return f"The path {path[:80]}… is longer than {MAX_PATH_BYTES} bytes. Shorten it."
    parts = path.split("/")
    if "\\" in path or any(part in ("", ".", "..") for part in parts):
        return (
            f"The path {path[:80]} is not relative to the folder of the model. Use '/' between names, "
            "and no '..'."
        )
    if any(len(part.encode()) > MAX_NAME_LENGTH for part in parts):
        return f"A name in {path[:80]}… is longer than {MAX_NAME_LENGTH} bytes. Shorten it."
    return ""


def listing_problem(paths: Sequence[str]) -> str:
    """Return the problem of the paths together. Empty if there is none. Names that differ only in case cannot
    be told apart on every disk.
    """
    if not paths:
        return "An artifact has at least one file."
    if len(paths) > MAX_FILES:
        return f"An artifact has at most {MAX_FILES:,} files; this one has {len(paths):,}."
    return _clash(paths)


def _clash(paths: Sequence[str]) -> str:
    seen: dict[str, str] = {}
    for path in paths:
        other = seen.get(path.casefold())
        if other == path:
            return f"{path} appears twice. Keep one."
        if other is not None:
            return f"{other} and {path} have the same name. Rename one."
        seen[path.casefold()] = path
    for path in paths:
        for parent in PurePosixPath(path.casefold()).parents:
            if str(parent) in seen:
                return f"{seen[str(parent)]} is a file and a folder. Rename one."
    return ""
