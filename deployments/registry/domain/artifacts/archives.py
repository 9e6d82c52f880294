"""Archives of files: which archives are no model themselves, and unpacking them as a stream.

Formats of models that are zip files themselves are recognised by their members (`zip_names.py`).
"""

from __future__ import annotations

import gzip
import io
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from typing import IO, Any, Final

from deployments.registry.domain.artifacts import files, zip_names
from deployments.registry.domain.artifacts.reading import (
    STREAM_BUFFER_BYTES,
    Artifact,
    PipedArtifact,
    open_file,
)
from deployments.registry.domain.not_servable import NotServable, quote

ENDINGS: Final = (".zip", ".tar", ".tar.gz", ".tgz")
_GZIP: Final = b"\x1f\x8b"
_TAR_MAGIC: Final = slice(257, 262)
_CHUNK_BYTES: Final = 2**20
HEAD_BYTES: Final = 512
_IS_ENCRYPTED: Final = 0x1
_BROKEN: Final = (
    zipfile.BadZipFile,
    zlib.error,
    gzip.BadGzipFile,
    tarfile.TarError,
    EOFError,
    NotImplementedError,
    UnicodeError,
    ValueError,
    OverflowError,
)


def kind_of(head: bytes) -> str:
    """Return "zip", "tar" or "gzip" by the first bytes. Empty for anything else."""
    if head.startswith(zip_names.MAGIC):
        return "zip"
    if head.startswith(_GZIP):
        return "gzip"
    return "tar" if head[_TAR_MAGIC] == b"ustar" else ""


def is_additional(argument: dict[str, Any], artifact: Artifact) -> bool:
    """Return whether the one file of the artifact is an archive of files. A task of the sandbox."""
    path = argument["main"]
    kind = kind_of(artifact.read(path, 0, HEAD_BYTES))
    if kind == "gzip":
        with gzip.GzipFile(fileobj=open_file(artifact, path)) as file:
            try:
                return file.read(HEAD_BYTES)[_TAR_MAGIC] == b"ustar"
            except _BROKEN:
                return False
    if kind != "zip":
        return kind == "tar"
    try:
        with zipfile.ZipFile(open_file(artifact, path)) as archive:
            names = [name for name in archive.namelist() if not name.endswith("/")]
    except _BROKEN:
        return False
    return bool(names) and not zip_names.kind_of_model(names)


def unpack(argument: dict[str, Any], artifact: PipedArtifact) -> dict[str, Any]:
    """Send each file of the archive to the parent. A task of the sandbox.

    {"main": path} to {"files": count, "ignored": count}. Raises NotServable for links, devices,
    encrypted members, paths that leave the folder and damaged archives: of a zip file, whose directory
    says all that, before the first file is sent.
    """
    path = argument["main"]
    kind = kind_of(artifact.read(path, 0, HEAD_BYTES))
    paths: list[str] = []
    ignored = 0
    try:
        if kind == "zip":
            members = _zip_members(artifact, path)
        else:
            members = _tar_members(artifact, path, is_compressed=kind == "gzip")
        for name, body in members:
            if files.is_clutter(name):
                ignored += 1
                continue
            _require_safe(name, len(paths))
            paths.append(name)
            artifact.begin_file(name)
            while chunk := body.read(_CHUNK_BYTES):
                artifact.write(chunk)
    except _BROKEN as error:
        raise NotServable(
            f"The archive is damaged ({quote(str(error))}). Pack the files again."
        ) from error
    _require_listing(paths)
    artifact.end_files()
    return {"files": len(paths), "ignored": ignored}


def _require_safe(name: str, before: int) -> None:
    """Require a safe path and not too many files. `before` is how many files of the archive came before this
    one. Raises NotServable.
    """
    if problem := files.path_problem(name):
        raise NotServable(f"The archive is not safe to unpack: {problem}")
    if before >= files.MAX_FILES:
        raise NotServable(
            f"The archive contains more than {files.MAX_FILES:,} files. Pack only the model."
        )


def _require_listing(paths: Sequence[str]) -> None:
    if not paths:
        raise NotServable("The archive contains no files. Pack the folder of the model.")
    if problem := files.listing_problem(paths):
        raise NotServable(problem)


def _zip_members(artifact: Artifact, path: str) -> Iterator[tuple[str, IO[bytes]]]:
    source = open_file(artifact, path, buffer_bytes=STREAM_BUFFER_BYTES)
    with zipfile.ZipFile(source) as archive:
        members = [info for info in archive.infolist() if not info.is_dir()]
        names = [info.filename for info in members if not files.is_clutter(info.filename)]
        for info in members:
            _require_plain(info)
        for number, name in enumerate(names):
            _require_safe(name, number)
        _require_listing(names)
        for info in members:
            with archive.open(info) as body:
                yield info.filename, body


def _require_plain(info: zipfile.ZipInfo) -> None:
    mode = info.external_attr >> 16
    if mode and not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_IFMT(mode) == 0):
        raise NotServable(f"{quote(info.filename)} is a link. Pack the file that it points to.")
    if info.flag_bits & _IS_ENCRYPTED:
        raise NotServable("The archive is encrypted. Pack it without a password.")


def _tar_members(
    artifact: Artifact, path: str, *, is_compressed: bool
) -> Iterator[tuple[str, IO[bytes]]]:
    source: Any = open_file(artifact, path, buffer_bytes=STREAM_BUFFER_BYTES)
    if is_compressed:
        source = io.BufferedReader(gzip.GzipFile(fileobj=source), _CHUNK_BYTES)
    with tarfile.open(fileobj=source, mode="r|") as archive:
        for info in archive:
            if info.isdir():
                continue
            if not info.isreg():
                raise NotServable(
                    f"{quote(info.name)} is a link or a device. Pack the file that it points to."
                )
            body = archive.extractfile(info)
            if body is not None:
                yield info.name.removeprefix("./"), body
