"""Import one file from a public or pre-signed URL."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings

from deployments.imports.domain.addresses import redacted_url
from deployments.imports.domain.errors import SourceRefused
from deployments.imports.domain.listing import Listing, SourceFile
from deployments.imports.gateways.remote_files import RemoteFiles
from deployments.imports.services import streamed_files
from deployments.imports.services.progress import ImportProgress
from deployments.models import ArtifactFile, Import, ImportedFile
from portal.notifications import vault


class UrlSource:
    def __init__(self, url: str, *, filename: str) -> None:
        self._url, self._filename = url, filename
        self._remote = RemoteFiles(private_hosts=settings.SLIPWAY_IMPORT_PRIVATE_HOSTS)

    @classmethod
    def from_import(cls, job: Import) -> UrlSource:
        try:
            url = vault.unseal(job.sealed_url)
        except vault.Unreadable as error:
            raise SourceRefused(
                "The address cannot be decrypted, because the portal's secret key has changed. Cancel "
                "this import and start a new one."
            ) from error
        return cls(url, filename=job.version.filename)

    def list_files(self, keep_alive: Callable[[], None]) -> Listing:
        keep_alive()
        size_bytes, validator = self._remote.describe(self._url)
        if size_bytes < 0:
            raise SourceRefused(
                f"{redacted_url(self._url)} does not say how large the file is. Import it from a "
                "server that sends Content-Length."
            )
        shown = redacted_url(self._url)
        return Listing([SourceFile(self._filename, size_bytes, locator=shown, etag=validator)])

    def part_bytes(self, size_bytes: int) -> int:
        return streamed_files.part_bytes(size_bytes)

    def copy(self, file: ArtifactFile, origin: ImportedFile, progress: ImportProgress) -> None:
        streamed_files.copy(
            file, origin, lambda start: self._remote.open(self._url, start=start), progress
        )

    def close(self) -> None:
        self._remote.close()
