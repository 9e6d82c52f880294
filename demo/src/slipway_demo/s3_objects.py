"""moto's objects and multipart uploads with their bytes in files (see s3_bodies).

moto keeps each part and each version in memory or in a temporary file, joins parts in memory and reads
a whole object for each range of it. `install` puts the classes here in their place.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from flask import has_request_context, request
from moto.s3 import models, responses
from moto.s3.exceptions import BadRequest, EntityTooSmall, InvalidPart, MalformedXML, S3ClientError
from moto.settings import S3_UPLOAD_PART_MIN_SIZE

from slipway_demo.s3_bodies import Bodies, Body, base64_of, checksum_of, md5_of

_moto_copy = models.S3Backend.copy_object
_moto_checksum = responses.compute_checksum


class BadDigest(S3ClientError):  # type: ignore[misc]  # moto is untyped
    code = "BadDigest"

    def __init__(self, algorithm: str) -> None:
        super().__init__(f"The {algorithm} you specified did not match the calculated checksum.")


class StoredKey(models.FakeKey):  # type: ignore[misc]  # moto is untyped
    """A version of an object, or a part: what moto knows of it, and a body in files."""

    bodies: ClassVar[Bodies]
    _etag: str | None
    disposed: bool

    def __new__(cls, *_: Any, **__: Any) -> StoredKey:
        # moto keeps a list of all objects it ever made, to clear them between tests.
        key: StoredKey = object.__new__(cls)
        return key

    @property
    def value(self) -> Body:
        return self._body

    @value.setter
    def value(self, content: bytes | str | Body) -> None:
        if isinstance(content, Body):
            self._body = self.bodies.hold(content)
        else:
            data = content.encode() if isinstance(content, str) else content
            self._etag = self._etag or md5_of([data])
            self._body = self.bodies.write(data)
        self.contentsize = len(self._body)

    @property
    def etag(self) -> str:
        if self._etag is None:
            self._etag = md5_of(self._body)
        return f'"{self._etag}"'

    def dispose(self, garbage: bool = False) -> None:  # noqa: FBT001, FBT002  # as moto calls it
        """Dispose of the body. moto calls it when a version is deleted or replaced, an upload ends, or a part is
        sent again.
        """
        if not garbage and not self.disposed:
            self.bodies.give_up(self._body)
            self.disposed = True

    def __del__(self) -> None:
        """Suppress moto's warning: files stay when the process ends."""

    def __getstate__(self) -> dict[str, Any]:
        state = {k: v for k, v in self.__dict__.items() if k not in ("_value_buffer", "lock")}
        return state | {"_body": self._body.pieces}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._body = Body(self.bodies.folder, state["_body"])
        self.lock = threading.Lock()


class StoredMultipart(models.FakeMultipart):  # type: ignore[misc]  # moto is untyped
    def __new__(cls, *_: Any, **__: Any) -> StoredMultipart:
        upload: StoredMultipart = object.__new__(cls)
        return upload

    @property
    def algorithm(self) -> str:
        return str(self.metadata.get("x-amz-checksum-algorithm") or "")

    def set_part(self, part_id: int, value: bytes | Body) -> Any:
        """Set a part. Refuses a part whose bytes have another SHA-256 than its request says, as S3 does."""
        declared = _declared_sha256()
        checksum = None
        if declared or self.algorithm:
            chunks = value if isinstance(value, Body) else [value]
            checksum = checksum_of(chunks, "SHA256" if declared else self.algorithm)
        if declared and checksum and base64_of(checksum) != declared:
            raise BadDigest("SHA256")
        part = super().set_part(part_id, value)
        part.part_checksum = checksum
        return part

    def complete(
        self, body: Iterator[tuple[int, str]]
    ) -> tuple[Body, str, tuple[str, str, int] | None]:
        """Return the body of all parts, its ETag, and type, value and number of parts of its checksum."""
        parts: list[Any] = []
        for number, etag in body:
            part = self.parts.get(number)
            if part is None or part.etag.strip('"') != etag.strip('"'):
                raise InvalidPart
            if parts and parts[-1].size < S3_UPLOAD_PART_MIN_SIZE:
                raise EntityTooSmall
            parts.append(part)
        if not parts:
            raise MalformedXML
        md5s = b"".join(bytes.fromhex(part.etag.strip('"')) for part in parts)
        etag = f"{hashlib.md5(md5s, usedforsecurity=False).hexdigest()}-{len(parts)}"
        pieces = tuple(piece for part in parts for piece in part.value.pieces)
        whole = Body(parts[0].value.folder, pieces)
        return whole, etag, self._checksum(whole, parts)

    def _checksum(self, whole: Body, parts: list[Any]) -> tuple[str, str, int] | None:
        if not self.algorithm:
            return None
        if self.metadata.get("x-amz-checksum-type") == "FULL_OBJECT":
            of_all = checksum_of(whole, self.algorithm)
            return ("FULL_OBJECT", base64_of(of_all), 1) if of_all else None
        of_parts = [part.part_checksum for part in parts]
        if any(checksum is None for checksum in of_parts):
            return None
        composite = checksum_of(of_parts, self.algorithm)
        return ("COMPOSITE", base64_of(composite), len(parts)) if composite else None


def _copy_object(backend: Any, source: StoredKey, bucket: str, name: str, **more: Any) -> None:
    """Copy an object. A copy is one object: its checksum is that of all bytes, not the one of the source's parts."""
    _moto_copy(backend, source, bucket, name, **more)
    if source.checksum_type == "COMPOSITE":
        copy = backend.get_object(bucket, name)
        checksum = checksum_of(copy.value, source.checksum_algorithm)
        copy.checksum_type = "FULL_OBJECT"
        copy.checksum_value = base64_of(checksum) if checksum else None


def _declared_sha256() -> str:
    return request.headers.get("x-amz-checksum-sha256", "") if has_request_context() else ""


def _compute_checksum(body: bytes | Body, algorithm: str) -> bytes:
    """Compute a checksum in Base64."""
    if not isinstance(body, Body):
        return bytes(_moto_checksum(body, algorithm))
    checksum = checksum_of(body, algorithm)
    if checksum is None:
        raise BadRequest(f"The checksum {algorithm} is not available here. Use SHA256.")
    return base64_of(checksum).encode()


def install(folder: Path) -> Bodies:
    """Make moto keep the bytes of its objects in `folder` from now on."""
    StoredKey.bodies = Bodies(folder)
    models.FakeKey = StoredKey
    models.FakeMultipart = StoredMultipart
    models.S3Backend.copy_object = _copy_object
    responses.compute_checksum = _compute_checksum
    return StoredKey.bodies
