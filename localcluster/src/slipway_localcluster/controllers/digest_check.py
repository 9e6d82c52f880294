"""The comparison of the `digest-check` init container, made here without a shell.

Record and messages have the format of `sha256sum --check --strict`. The container's own command is
not run: a pod's shell commands must not run on this machine.
"""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

NAME = "digest-check"
RECORD = "SLIPWAY_DIGESTS"
DIRECTORY = "SLIPWAY_MODELS"
_LINE = re.compile(r"([0-9a-f]{64})  (.+)")
# Configurations of other revisions: --model-config-name selects one of them.
_OTHER_SETTINGS = re.compile(r"[^/]*/configs/slipway-[0-9a-f]*\.pbtxt")


class FilesDiffer(Exception):
    """Downloaded files differ from the record; the message names them."""


def compare(directory: Path, record: str) -> None:
    """Raises FilesDiffer."""
    recorded = dict(_lines(record))
    differences = [*_changed(directory, recorded), *_unrecorded(directory, recorded)]
    if differences:
        raise FilesDiffer("\n".join(differences))


def compare_file(directory: Path, path: str, record: str) -> None:
    """Compare one recorded file. Raises FilesDiffer."""
    recorded = {name: sha256 for name, sha256 in _lines(record) if name == path}
    differences = list(_changed(directory, recorded))
    if differences:
        raise FilesDiffer("\n".join(differences))


def _lines(record: str) -> Iterator[tuple[str, str]]:
    lines = record.splitlines()
    if not lines:
        raise FilesDiffer("sha256sum: no properly formatted checksum lines found")
    for line in lines:
        match = _LINE.fullmatch(line)
        if match is None:
            raise FilesDiffer("sha256sum: WARNING: 1 line is improperly formatted")
        yield match[2], match[1]


def _changed(directory: Path, recorded: dict[str, str]) -> Iterator[str]:
    for path, sha256 in recorded.items():
        file = directory / path
        if not file.is_file():
            yield f"{path}: FAILED open or read"
            continue
        with file.open("rb") as stream:
            if hashlib.file_digest(stream, "sha256").hexdigest() != sha256:
                yield f"{path}: FAILED"


def _unrecorded(directory: Path, recorded: dict[str, str]) -> Iterator[str]:
    for file in sorted(directory.rglob("*")):
        path = file.relative_to(directory).as_posix()
        is_expected = path in recorded or _OTHER_SETTINGS.fullmatch(path) is not None
        if not file.is_dir() and not is_expected:
            yield f"{path}: not in the record"
