"""Sign the parts of an upload: a URL for one PUT of exactly the bytes of a part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from deployments.models.multipart import MultipartFile
from deployments.registry.gateways import object_store
from deployments.registry.services import file_uploads, upload_validation, uploads
from deployments.registry.services.store_errors import translate_errors
from portal.accounts.models import User
from portal.core.errors import Conflict, Invalid


@dataclass(frozen=True, slots=True)
class PartsToSign:
    """The parts of one file to sign. `checksums` are base64 SHA-256 by part number. Without a path, it is the
    one file of the upload.
    """

    path: str
    numbers: Sequence[int]
    checksums: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PartUrl:
    path: str
    number: int
    url: str
    size_bytes: int
    headers: Mapping[str, str]


def sign_parts(*, actor: User, version_id: int, files: Sequence[PartsToSign]) -> list[PartUrl]:
    """Return URLs for one PUT each, of parts of one file or of several small ones.

    Nothing is opened in the store unless all of them can be signed.
    """
    version = uploads.uploading_version(actor, version_id)
    upload_validation.check_count([item.numbers for item in files])
    chosen = list(
        zip(uploads.files_named(version, [item.path for item in files]), files, strict=True)
    )
    for file, item in chosen:
        require_signable(file, item, has_part_checksums=version.has_part_checksums)
    uploads.extend(version)
    urls = []
    for file, item in chosen:
        urls += sign(file, item, has_part_checksums=version.has_part_checksums)
    return urls


def sign(file: MultipartFile, item: PartsToSign, *, has_part_checksums: bool) -> list[PartUrl]:
    """Open the file's upload in the store and sign URLs for its parts. The file must pass `require_signable`."""
    file_uploads.open_upload(file, with_part_checksums=has_part_checksums)
    checksums = item.checksums if has_part_checksums else {}
    return [_sign(file, number, checksums.get(number, "")) for number in item.numbers]


def require_signable(file: MultipartFile, item: PartsToSign, *, has_part_checksums: bool) -> None:
    upload_validation.check_numbers(item.numbers, file_uploads.plan_of(file))
    if has_part_checksums and set(item.numbers) - set(item.checksums):
        raise Invalid(
            "This upload was opened with part_checksums: send `checksums` for all part numbers.",
            fields={"checksums": "base64 SHA-256 of each part"},
        )
    if file.s3_version_id:
        raise Conflict(f"{file.path} is complete; no part of it can be sent.", code="wrong_state")


def _sign(file: MultipartFile, number: int, checksum: str) -> PartUrl:
    size_bytes = file_uploads.plan_of(file).bytes_of(number)
    with translate_errors():
        url = object_store.store().presign_part(
            file.key, file.upload_id, number, size_bytes=size_bytes, sha256_base64=checksum
        )
    headers = {"x-amz-checksum-sha256": checksum} if checksum else {}
    return PartUrl(file.path, number, url, size_bytes, headers)
