"""The REST of an MLflow tracking server, with the credential of the installation.

Servers are those of the settings alone, so that no user chooses where a request goes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlencode

from django.conf import settings

from deployments.imports.domain.errors import SourceRefused
from deployments.imports.domain.mlflow import answers, locations, servers
from deployments.imports.domain.mlflow.answers import (
    ArtifactEntry,
    MlflowModel,
    MlflowVersion,
    Page,
    Run,
)
from deployments.imports.gateways.remote_files import RemoteFiles

_API: Final = "/api/2.0/mlflow"
_DENIED: Final = (401, 403)
# MLflow answers 400 for an alias that does not exist.
_MISSING: Final = (400, 404)
# A server whose root of artifacts is a bucket fetches a whole file before its first byte.
_COPY_SECONDS: Final = 90
_MAX_DEPTH: Final = 20


def list_servers() -> dict[str, str]:
    """Return the addresses by name, without a slash at the end."""
    return {name: url.rstrip("/") for name, url in settings.SLIPWAY_IMPORT_MLFLOW.items()}


class MlflowServer:
    def __init__(self, name: str, *, read_seconds: float = _COPY_SECONDS) -> None:
        """Open a configured server by its name. Raises SourceRefused for a name that is not configured."""
        known = list_servers()
        self.name = servers.choose(known, name)
        self.address = known[self.name]
        self.files = RemoteFiles(
            private_hosts=settings.SLIPWAY_IMPORT_PRIVATE_HOSTS,
            origin=self.address,
            headers=servers.headers_of(
                settings.SLIPWAY_IMPORT_MLFLOW_CREDENTIALS.get(self.name, "")
            ),
            read_seconds=read_seconds,
        )

    def close(self) -> None:
        self.files.close()

    def search_models(self, text: str, *, page: str, count: int) -> Page[MlflowModel]:
        """Return models whose name contains the text."""
        query = {"max_results": str(count), "order_by": "name ASC", "page_token": page}
        if text:
            query["filter"] = f"name ILIKE {_quoted(f'%{text}%')}"
        return answers.registered_models(self._get("registered-models/search", query, "such page"))

    def list_versions(self, name: str, *, page: str, count: int) -> Page[MlflowVersion]:
        """List the versions of a model, newest first. Their aliases are read from the model, because lists of
        versions leave them out.
        """
        model = self._get("registered-models/get", {"name": name}, f"model {name}")
        query = {
            "filter": f"name={_quoted(name)}",
            "max_results": str(count),
            "order_by": "version_number DESC",
            "page_token": page,
        }
        answer = self._get("model-versions/search", query, "such page")
        return answers.model_versions(answer, aliases=answers.aliases_of(model))

    def find_version(self, name: str, *, number: str, alias: str) -> MlflowVersion:
        what = f"{name}@{alias}" if alias else f"{name}/{number}"
        if alias:
            query = {"name": name, "alias": alias}
            return answers.model_version(self._get("registered-models/alias", query, what))
        query = {"name": name, "version": number}
        return answers.model_version(self._get("model-versions/get", query, what))

    def artifact_uri(self, version: MlflowVersion) -> str:
        query = {"name": version.name, "version": version.number}
        what = f"{version.name}/{version.number}"
        return answers.artifact_uri(self._get("model-versions/get-download-uri", query, what))

    def find_run(self, run_id: str) -> Run | None:
        """Return a run. None if it was deleted for good."""
        try:
            return answers.run(self._get("runs/get", {"run_id": run_id}, f"run {run_id}"))
        except SourceRefused as error:
            if error.status in _MISSING:
                return None
            raise

    def list_files(
        self, folder: str, *, at_most: int, keep_alive: Callable[[], None]
    ) -> dict[str, int]:
        """List the sizes by path below the folder; at most one file more than `at_most`."""
        sizes: dict[str, int] = {}
        left = [""]
        while left and len(sizes) <= at_most:
            keep_alive()
            inside = left.pop()
            for entry in self._entries(f"{folder}/{inside}".rstrip("/")):
                path = f"{inside}{entry.name}"
                if not entry.is_folder:
                    sizes[path] = entry.size_bytes
                elif path.count("/") < _MAX_DEPTH:
                    left.append(f"{path}/")
        return sizes

    def _entries(self, folder: str) -> list[ArtifactEntry]:
        answer, _ = self._read(locations.folder_url(self.address, folder), folder)
        return answers.artifact_entries(answer)

    def _get(self, method: str, query: dict[str, str], what: str) -> Any:
        given = urlencode({name: text for name, text in query.items() if text})
        return self._read(f"{self.address}{_API}/{method}?{given}", what)[0]

    def _read(self, url: str, what: str) -> tuple[Any, Any]:
        try:
            return self.files.get_json(url)
        except SourceRefused as error:
            raise SourceRefused(self._explain(error, what), status=error.status) from error

    def _explain(self, error: SourceRefused, what: str) -> str:
        if error.status in _DENIED:
            return (
                f"MLflow server {self.name} denied access ({error.status}). A platform admin can set its "
                "credential in SLIPWAY_IMPORT_MLFLOW_CREDENTIALS."
            )
        if error.status in _MISSING:
            return f"MLflow server {self.name} has no {what}."
        return str(error)


def _quoted(text: str) -> str:
    """Quote a text for MLflow's filters. Their grammar has no escape, so a text with one kind of quote is put
    in the other. Raises SourceRefused for a text with both kinds.
    """
    if "'" in text and '"' in text:
        raise SourceRefused("A name with both kinds of quotes cannot be searched for.", status=400)
    return f'"{text}"' if "'" in text else f"'{text}'"
