"""Rules for the members of zip archives, which several formats of models are."""

from __future__ import annotations

import io
import re
import stat
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import IO, Final

from deployments.registry.domain.not_servable import printable
from deployments.registry.domain.scanning import content, pickle_rules
from deployments.registry.domain.scanning.findings import Findings

_EXPANDS_AT_MOST: Final = 20
_ALWAYS_ALLOWED_BYTES: Final = 2**30
_MOST_MEMBERS: Final = 100_000
_LARGEST_READ_BYTES: Final = 256 * 2**20
_HEAD_BYTES: Final = 512
_PICKLES: Final = frozenset({".pkl", ".pickle", ".joblib", ".dat", ".data"})
_KERAS_LAMBDA: Final = re.compile(rb'"class_name"\s*:\s*"Lambda"')
_TORCH_OPERATORS: Final = re.compile(rb"\bops\.([A-Za-z_]\w*)\.")
_TORCH_OWN: Final = frozenset({b"aten", b"prim", b"prims", b"quantized", b"_quantized"})


def open_zip(file: IO[bytes]) -> zipfile.ZipFile | None:
    """Return the archive, also where other bytes come before it. None if there is none with a member."""
    if not zipfile.is_zipfile(file):
        return None
    try:
        archive = zipfile.ZipFile(file)
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError):
        return None
    if archive.infolist():
        return archive
    archive.close()
    return None


def scan(archive: zipfile.ZipFile, size: int, findings: Findings) -> None:
    """Scan the members of an archive. `size` is that of the archive in bytes."""
    members = archive.infolist()
    if len(members) > _MOST_MEMBERS:
        findings.cannot_read(f"it has more than {_MOST_MEMBERS:,} members")
        return
    if sum(item.file_size for item in members) > max(
        _ALWAYS_ALLOWED_BYTES, size * _EXPANDS_AT_MOST
    ):
        findings.cannot_read("the archive expands too far")
        return
    seen: set[str] = set()
    for item in members:
        for problem in _problems_with(item, seen):
            findings.cannot_read(problem)
        seen.add(item.filename)
        if not item.is_dir() and not item.flag_bits & 1:
            _scan_member(archive, item, findings)


def _problems_with(item: zipfile.ZipInfo, seen: set[str]) -> Iterator[str]:
    name = printable(item.filename)[:100]
    path = PurePosixPath(item.filename.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or ":" in item.filename:
        yield f"member {name} points outside the archive"
    if stat.S_ISLNK(item.external_attr >> 16):
        yield f"member {name} is a link"
    if item.flag_bits & 1:
        yield f"member {name} is encrypted"
    if item.filename in seen:
        yield f"member {name} occurs twice"


def _scan_member(archive: zipfile.ZipFile, item: zipfile.ZipInfo, findings: Findings) -> None:
    name = printable(item.filename)[:100]
    try:
        with archive.open(item) as file:
            head = file.read(_HEAD_BYTES)
        if kind := content.executable(head):
            findings.runs(f"{name}, {kind}")
        elif kind := content.archive(head):
            findings.cannot_read(f"member {name} is a nested {kind} archive")
        elif _is_read(item, head):
            _scan_content(archive, item, head, findings)
    except (
        zipfile.BadZipFile,
        RuntimeError,
        NotImplementedError,
        EOFError,
        OSError,
        ValueError,
    ) as error:
        findings.cannot_read(f"member {name} is damaged: {printable(str(error))[:80]}")
    except zlib.error as error:
        findings.cannot_read(f"member {name} is damaged: {printable(str(error))[:80]}")


def _is_read(item: zipfile.ZipInfo, head: bytes) -> bool:
    """Return whether a member is scanned. Members with weights are not: any bytes are valid there."""
    suffix = PurePosixPath(item.filename).suffix.lower()
    is_text = suffix == ".py" or PurePosixPath(item.filename).name == "config.json"
    return is_text or suffix in _PICKLES or pickle_rules.may_be_pickled(item.filename, head)


def _scan_content(
    archive: zipfile.ZipFile, item: zipfile.ZipInfo, head: bytes, findings: Findings
) -> None:
    if item.file_size > _LARGEST_READ_BYTES:
        findings.cannot_read(f"member {printable(item.filename)[:100]} is too large to be read")
        return
    with archive.open(item) as file:
        body = file.read(_LARGEST_READ_BYTES)
    name = PurePosixPath(item.filename)
    if name.suffix == ".py":
        _scan_torch_script(body, findings)
    elif name.name == "config.json":
        if _KERAS_LAMBDA.search(body):
            findings.runs("a Lambda layer of Keras")
    else:
        pickle_rules.scan(
            _file(body), len(body), head, is_pickle=name.suffix in _PICKLES, findings=findings
        )


def _file(body: bytes) -> IO[bytes]:
    return io.BytesIO(body)


def _scan_torch_script(code: bytes, findings: Findings) -> None:
    for namespace in sorted(set(_TORCH_OPERATORS.findall(code)) - _TORCH_OWN)[:5]:
        findings.runs(f"custom operators of {namespace.decode()}")
