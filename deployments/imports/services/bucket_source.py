"""Import from a bucket: objects are copied inside the store, pinned to the listed bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from django.conf import settings

from deployments.imports.domain import allowed_prefixes
from deployments.imports.domain.addresses import BucketAddress, parse
from deployments.imports.domain.errors import SourceRefused
from deployments.imports.domain.listing import Listing, SourceFile
from deployments.imports.gateways.source_bucket import SourceBucket, SourceObject
from deployments.imports.services.progress import ImportProgress
from deployments.models import ArtifactFile, Import, ImportedFile
from deployments.registry.domain.artifacts import files as artifact_files
from deployments.registry.services import file_uploads

# Larger objects are copied in parts, so that a copy is short, and resumed part by part.
SINGLE_COPY_BYTES: Final = 256 * 2**20
COPY_PART_BYTES: Final = 256 * 2**20


def require_allowed(address: BucketAddress, *, team: str) -> None:
    """Require that the team may import from the address. Raises SourceRefused, always for the portal's own
    bucket, which has the files of all teams.
    """
    patterns = settings.SLIPWAY_IMPORT_S3
    if address.bucket == settings.SLIPWAY_S3_BUCKET:
        raise SourceRefused("This is the portal's own bucket. Use the version that is there.")
    if not allowed_prefixes.is_allowed(patterns, address, team=team):
        described = allowed_prefixes.describe(patterns, team=team)
        allowed = f"Team {team} can import from {described}." if described else ""
        raise SourceRefused(
            f"s3://{address.bucket}/{address.key} is not among the buckets that can be imported from. "
            f"{allowed} Ask a platform admin to add it to SLIPWAY_IMPORT_S3.".replace("  ", " ")
        )


class BucketSource:
    def __init__(self, address: BucketAddress, *, team: str) -> None:
        require_allowed(address, team=team)
        self._address = address
        self._bucket = SourceBucket(address.bucket)

    @classmethod
    def from_import(cls, job: Import) -> BucketSource:
        place = parse(job.address).place
        if not isinstance(place, BucketAddress):
            raise SourceRefused("The address does not name a bucket.")
        return cls(place, team=job.version.team.slug)

    def list_files(self, keep_alive: Callable[[], None]) -> Listing:
        key = self._address.key
        if key and not key.endswith("/"):
            single = self._bucket.find(key)
            if single is not None:
                return Listing([single])
            key += "/"
        files = self._bucket.list_files(
            key, at_most=artifact_files.MAX_FILES, keep_alive=keep_alive
        )
        if not files:
            raise SourceRefused(
                f"There is nothing at s3://{self._address.bucket}/{self._address.key}. Check the "
                "prefix, then start a new import."
            )
        return Listing(files)

    def read(self, file: SourceFile) -> bytes:
        """Return the listed bytes of a small file."""
        return self._bucket.read(file)

    def part_bytes(self, size_bytes: int) -> int:
        return COPY_PART_BYTES

    def copy(self, file: ArtifactFile, origin: ImportedFile, progress: ImportProgress) -> None:
        source = SourceObject(
            self._address.bucket, origin.locator, origin.version_id, origin.etag, file.size_bytes
        )
        if file.size_bytes <= SINGLE_COPY_BYTES:
            self._copy_whole(file, source, progress)
        else:
            self._copy_parts(file, source, progress)

    def close(self) -> None:
        """Do nothing: no connection is open."""

    def _copy_whole(
        self, file: ArtifactFile, source: SourceObject, progress: ImportProgress
    ) -> None:
        # Copied already where the worker died before it could record it.
        if not file_uploads.record_if_stored(file):
            self._bucket.copy(source, file.key)
            file_uploads.record_if_stored(file)
        progress.add(file.size_bytes)

    def _copy_parts(
        self, file: ArtifactFile, source: SourceObject, progress: ImportProgress
    ) -> None:
        file_uploads.open_upload(file, with_part_checksums=False)
        state = file_uploads.parts_state(file)
        missing = state.missing
        progress.add(file.size_bytes - sum(state.plan.bytes_of(number) for number in missing))
        for number in missing:
            start = (number - 1) * state.plan.part_bytes
            count = state.plan.bytes_of(number)
            self._bucket.copy_part(source, file.key, file.upload_id, number, start, count)
            progress.add(count)
            progress.part_done()
        file_uploads.assemble(file)
