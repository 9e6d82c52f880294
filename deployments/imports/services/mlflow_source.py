"""Import a version of a registered model of an MLflow tracking server.

The files of the flavor that is served come along, from the server itself or, if they lie in a bucket, inside S3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from deployments.imports.domain.addresses import RegisteredModel, parse
from deployments.imports.domain.errors import SourceRefused
from deployments.imports.domain.listing import Listing, SourceFile
from deployments.imports.domain.mlflow import metadata, model_folder, servers
from deployments.imports.domain.mlflow.answers import MlflowVersion
from deployments.imports.domain.mlflow.model_folder import ModelFile
from deployments.imports.gateways import mlflow_server
from deployments.imports.gateways.mlflow_server import MlflowServer
from deployments.imports.services import mlflow_folders
from deployments.imports.services.mlflow_folders import MlflowFolder
from deployments.imports.services.progress import ImportProgress
from deployments.models import ArtifactFile, Import, ImportedFile

_MAX_README: Final = 100_000
_URI: Final = "artifact_uri"


def choose_server(place: RegisteredModel, name: str) -> str:
    """Return the server to import from. Raises SourceRefused."""
    if name and place.server and name != place.server:
        raise SourceRefused(f"The address is one of MLflow server {place.server}, not of {name}.")
    return servers.choose(mlflow_server.list_servers(), place.server or name)


class MlflowSource:
    """A model version of an MLflow server as a source. `facts` are those of the listing, empty before it."""

    def __init__(
        self,
        place: RegisteredModel,
        *,
        server: str,
        pin: str,
        team: str,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        self._place, self._pin, self._team = place, pin, team
        self._server = MlflowServer(server)
        uri = (facts or {}).get(_URI)
        self._folder = self._open_folder(uri) if uri else None

    @classmethod
    def from_import(cls, job: Import) -> MlflowSource:
        place = parse(job.address).place
        if not isinstance(place, RegisteredModel):
            raise SourceRefused("The address does not name a version of a registered model.")
        team = job.version.team.slug
        return cls(place, server=job.server, pin=job.pin, team=team, facts=job.facts)

    def list_files(self, keep_alive: Callable[[], None]) -> Listing:
        version = self._find_version()
        run = self._server.find_run(version.run_id) if version.run_id else None
        uri = self._server.artifact_uri(version)
        self._folder = self._open_folder(uri)
        files = {file.path: file for file in self._folder.list_files(keep_alive)}
        model = _read_model_file(self._folder, files)
        selection = model_folder.select(model, list(files))
        version_metadata, without_place = metadata.metadata_of(
            version, run, selection, address=self._server.address
        )
        facts = metadata.facts_of(version, run, model, selection)
        return Listing(
            [replace(files[source], path=path) for path, source in selection.files.items()],
            pin=version.number,
            metadata=version_metadata,
            readme=version.description.replace("\r\n", "\n").strip()[:_MAX_README],
            facts={**facts, _URI: uri, "without_place": without_place},
        )

    def part_bytes(self, size_bytes: int) -> int:
        return self._listed_folder.part_bytes(size_bytes)

    def copy(self, file: ArtifactFile, origin: ImportedFile, progress: ImportProgress) -> None:
        self._listed_folder.copy(file, origin, progress)

    def close(self) -> None:
        self._server.close()

    @property
    def _listed_folder(self) -> MlflowFolder:
        if self._folder is None:
            raise SourceRefused("The model has not been listed. Resume the import.")
        return self._folder

    def _open_folder(self, uri: str) -> MlflowFolder:
        return mlflow_folders.open_folder(self._server, uri, team=self._team)

    def _find_version(self) -> MlflowVersion:
        """Find the version. The one that an alias named at the first listing stays the one."""
        number = self._pin or self._place.number
        alias = "" if number else self._place.alias
        version = self._server.find_version(self._place.name, number=number, alias=alias)
        if not version.is_ready:
            raise SourceRefused(
                f"MLflow says that version {version.number} is {version.status[:40]}. Import it when it is "
                "READY."
            )
        return version


def _read_model_file(folder: MlflowFolder, files: Mapping[str, SourceFile]) -> ModelFile:
    file = files.get(model_folder.FILE)
    if file is None:
        raise SourceRefused(
            f"The artifacts of this version have no file {model_folder.FILE}, so it is not a model that "
            "MLflow logged."
        )
    if file.size_bytes > model_folder.MAX_BYTES:
        raise SourceRefused(f"The file {model_folder.FILE} is larger than 1 MiB.")
    return mlflow_folders.read_model_file(folder.read(file))
