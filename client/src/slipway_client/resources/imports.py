"""Imports: copy a model from where it is into a new version, without a byte through this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from slipway_client import waiting
from slipway_client.connection import Connection
from slipway_client.decoding import decode
from slipway_client.errors import Failed
from slipway_client.resources.names import parse_model
from slipway_client.types import Import, MlflowModel, MlflowServer, MlflowVersion

_RUNNING = "running"
_DONE = "done"


class Imports:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def start(
        self,
        address: str,
        model: str,
        *,
        server: str = "",
        metadata: Mapping[str, Any] | None = None,
        fields: Mapping[str, Any] | None = None,
    ) -> Import:
        """Start an import. `address` is s3://bucket/prefix/, https://host/model.onnx, models:/name/3,
        models:/name@alias or hf://organisation/model:commit; `server` names the MLflow server, if there are
        several. `fields` are further fields of the request, such as `declared` and `readme`.
        """
        body = {
            "address": address,
            "server": server,
            **({"metadata": dict(metadata)} if metadata else {}),
        }
        path = f"models/{parse_model(model)}/imports"
        return decode(Import, self._connection.post(path, {**body, **(fields or {})}))

    def get(self, import_id: int) -> Import:
        return decode(Import, self._connection.get(f"imports/{import_id}"))

    def list(self, *, state: str = "") -> Iterator[Import]:
        """Iterate over the imports, newest first, of all models that the token's owner may see."""
        pages = self._connection.pages("imports", {"state": state})
        return (decode(Import, row) for row in pages)

    def cancel(self, import_id: int) -> Import:
        return decode(Import, self._connection.post(f"imports/{import_id}/cancel"))

    def resume(self, import_id: int) -> Import:
        return decode(Import, self._connection.post(f"imports/{import_id}/resume"))

    def wait(
        self,
        import_id: int,
        *,
        seconds: float = 3600,
        on_change: Callable[[Import], None] | None = None,
    ) -> Import:
        """Wait until all files are copied. Raises Failed with the reason if it failed or was canceled."""
        ended = waiting.wait_for(
            lambda: self.get(import_id),
            lambda current: current.state != _RUNNING,
            seconds=seconds,
            describe=lambda current: f"the {current} is {current.state}. {current.error}".strip(),
            on_change=on_change,
            sleep=self._connection.sleep,
        )
        if ended.state != _DONE:
            raise Failed(f"The {ended} is {ended.state}: {ended.error}")
        return ended

    def mlflow_servers(self) -> tuple[MlflowServer, ...]:
        """Return the tracking servers that this installation imports from."""
        return tuple(decode(MlflowServer, row) for row in self._connection.get("mlflow-servers"))

    def mlflow_models(self, server: str, *, search: str = "") -> Iterator[MlflowModel]:
        pages = self._pages(f"mlflow-servers/{server}/models", {"search": search})
        return (decode(MlflowModel, row) for row in pages)

    def mlflow_versions(self, server: str, model: str) -> Iterator[MlflowVersion]:
        """Iterate over the versions of an MLflow model, newest first."""
        pages = self._pages(f"mlflow-servers/{server}/versions", {"model": model})
        return (decode(MlflowVersion, row) for row in pages)

    def _pages(self, path: str, query: Mapping[str, str]) -> Iterator[Any]:
        page = ""
        while True:
            answer = self._connection.get(path, {**query, "page": page})
            yield from answer["results"]
            page = answer["next_page"]
            if not page:
                return
