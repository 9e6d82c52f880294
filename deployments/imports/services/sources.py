"""The interface of all kinds of sources, and the choice of the one that an import uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from django.conf import settings

from deployments.imports.domain import allowed_prefixes
from deployments.imports.domain.listing import Listing
from deployments.imports.gateways import mlflow_server
from deployments.imports.services.bucket_source import BucketSource
from deployments.imports.services.hub_source import HubSource
from deployments.imports.services.mlflow_source import MlflowSource
from deployments.imports.services.progress import ImportProgress
from deployments.imports.services.url_source import UrlSource
from deployments.models import ArtifactFile, Import, ImportedFile
from deployments.states import ImportKind


class ImportSource(Protocol):
    """A source of files. Its methods raise SourceError. `copy` can be repeated: what is stored already is not
    copied again.
    """

    def list_files(self, keep_alive: Callable[[], None]) -> Listing: ...
    def part_bytes(self, size_bytes: int) -> int: ...
    def copy(self, file: ArtifactFile, origin: ImportedFile, progress: ImportProgress) -> None: ...
    def close(self) -> None: ...


def open_source(job: Import) -> ImportSource:
    match ImportKind(job.kind):
        case ImportKind.S3:
            return BucketSource.from_import(job)
        case ImportKind.URL:
            return UrlSource.from_import(job)
        case ImportKind.HUGGING_FACE:
            return HubSource.from_import(job)
        case ImportKind.MLFLOW:
            return MlflowSource.from_import(job)


def describe_available(team: str) -> list[tuple[str, str]]:
    """List the kinds of sources by name, each with the places from which the team can import in this
    installation.
    """
    buckets = allowed_prefixes.describe(settings.SLIPWAY_IMPORT_S3, team=team)
    hub = settings.SLIPWAY_IMPORT_HUGGINGFACE
    off = "switched off in this installation"
    return [
        ("Bucket", buckets or off),
        ("Address", "any public HTTPS address, also pre-signed ones"),
        ("MLflow", ", ".join(mlflow_server.list_servers()) or off),
        ("Hugging Face", hub or off),
    ]
