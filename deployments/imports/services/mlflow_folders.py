"""The folder of an MLflow model: on the tracking server, or in a bucket that it names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from deployments.imports.domain.addresses import BucketAddress
from deployments.imports.domain.errors import SourceRefused
from deployments.imports.domain.listing import SourceFile
from deployments.imports.domain.mlflow import locations, model_folder
from deployments.imports.domain.mlflow.model_folder import ModelFile
from deployments.imports.gateways.mlflow_server import MlflowServer
from deployments.imports.services import streamed_files
from deployments.imports.services.bucket_source import BucketSource
from deployments.imports.services.progress import ImportProgress
from deployments.models import ArtifactFile, ImportedFile
from deployments.registry.domain.artifacts import files as artifact_files
from portal.core import documents
from portal.core.documents import Bounds, UnreadableDocument

_BOUNDS: Final = Bounds(
    most_bytes=model_folder.MAX_BYTES,
    most_depth=20,
    most_values=50_000,
    largest=2**63,
    largest_float=2.0**63,
)


class MlflowFolder(Protocol):
    """The folder of a model version. Paths of its files are relative to it."""

    def list_files(self, keep_alive: Callable[[], None]) -> list[SourceFile]: ...
    def read(self, file: SourceFile) -> bytes: ...
    def part_bytes(self, size_bytes: int) -> int: ...
    def copy(self, file: ArtifactFile, origin: ImportedFile, progress: ImportProgress) -> None: ...


def open_folder(server: MlflowServer, uri: str, *, team: str) -> MlflowFolder:
    """Open the folder of a model version. Raises SourceRefused for a place that is not read, and for a bucket
    that the team may not import from.
    """
    place = locations.parse(uri, server=server.address)
    if isinstance(place, BucketAddress):
        return FolderInBucket(place, team=team)
    return FolderOnServer(server, place.path)


class FolderOnServer:
    """A folder on the tracking server. Files are pinned by their size alone: each download of MLflow can have
    another ETag.
    """

    def __init__(self, server: MlflowServer, path: str) -> None:
        self._server, self._path = server, path

    def list_files(self, keep_alive: Callable[[], None]) -> list[SourceFile]:
        sizes = self._server.list_files(
            self._path, at_most=artifact_files.MAX_FILES, keep_alive=keep_alive
        )
        return [
            SourceFile(path, size, locator=f"{self._path}/{path}")
            for path, size in sorted(sizes.items())
        ]

    def read(self, file: SourceFile) -> bytes:
        return self._server.files.get_bytes(self._url(file.locator))

    def part_bytes(self, size_bytes: int) -> int:
        return streamed_files.part_bytes(size_bytes)

    def copy(self, file: ArtifactFile, origin: ImportedFile, progress: ImportProgress) -> None:
        url = self._url(origin.locator)
        streamed_files.copy(
            file, origin, lambda start: self._server.files.open(url, start=start), progress
        )

    def _url(self, path: str) -> str:
        return locations.file_url(self._server.address, path)


class FolderInBucket:
    """A folder in S3. It is copied inside S3, as an import from the bucket is, and only where the team may
    import from.
    """

    def __init__(self, place: BucketAddress, *, team: str) -> None:
        self._source = BucketSource(BucketAddress(place.bucket, f"{place.key}/"), team=team)

    def list_files(self, keep_alive: Callable[[], None]) -> list[SourceFile]:
        return list(self._source.list_files(keep_alive).files)

    def read(self, file: SourceFile) -> bytes:
        return self._source.read(file)

    def part_bytes(self, size_bytes: int) -> int:
        return self._source.part_bytes(size_bytes)

    def copy(self, file: ArtifactFile, origin: ImportedFile, progress: ImportProgress) -> None:
        self._source.copy(file, origin, progress)


def read_model_file(content: bytes) -> ModelFile:
    """Return the file MLmodel. Raises SourceRefused."""
    try:
        return model_folder.parse(documents.read_yaml(content, _BOUNDS))
    except UnreadableDocument as error:
        raise SourceRefused(f"The file {model_folder.FILE} cannot be read: {error}") from error
