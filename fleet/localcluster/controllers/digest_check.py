"""What the `digest-check` init container finds: the same record, compared here without a shell.

The record is what `sha256sum --check --strict` reads, and the words are those of that command. The
container's own command is not run: a pod's commands have no business on this machine.
"""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

NAME = "digest-check"
RECORD = "SLIPWAY_DIGESTS"
DIRECTORY = "SLIPWAY_MODELS"
_LINE = re.compile(r"([0-9a-f]{64})  (.+)")
# Configurations of other revisions: Triton loads the one that it is told to.
_OTHER_SETTINGS = re.compile(r"[^/]*/configs/slipway-[0-9a-f]*\.pbtxt")


class FilesDiffer(Exception):
    """What was downloaded is not what the record says; the message names the files."""


def compare(directory: Path, record: str) -> None:
    """Raises FilesDiffer."""
    recorded = dict(_lines(record))
    found = [*_differing(directory, recorded), *_others(directory, recorded)]
    if found:
        raise FilesDiffer("\n".join(found))


def _lines(record: str) -> Iterator[tuple[str, str]]:
    lines = record.splitlines()
    if not lines:
        raise FilesDiffer("sha256sum: no properly formatted checksum lines found")
    for line in lines:
        match = _LINE.fullmatch(line)
        if match is None:
            raise FilesDiffer("sha256sum: WARNING: 1 line is improperly formatted")
        yield match[2], match[1]


def _differing(directory: Path, recorded: dict[str, str]) -> Iterator[str]:
    for path, sha256 in recorded.items():
        file = directory / path
        if not file.is_file():
            yield f"{path}: FAILED open or read"
            continue
        with file.open("rb") as stream:
            if hashlib.file_digest(stream, "sha256").hexdigest() != sha256:
                yield f"{path}: FAILED"


def _others(directory: Path, recorded: dict[str, str]) -> Iterator[str]:
    for file in sorted(directory.rglob("*")):
        path = file.relative_to(directory).as_posix()
        is_there_to_be = path in recorded or _OTHER_SETTINGS.fullmatch(path) is not None
        if not file.is_dir() and not is_there_to_be:
            yield f"{path}: not in the record"
