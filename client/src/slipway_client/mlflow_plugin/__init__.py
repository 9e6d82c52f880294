"""Slipway as a target of MLflow's deployment API: `mlflow deployments create -t slipway://host …`.

The token comes from SLIPWAY_TOKEN or from `slipway login`, never from the target. Config (-C):
model (team/model, required to create), deployment settings (instance_type, memory, scaling.kind, …),
and cluster, environment, comment, wait, timeout.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import mlflow.artifacts
from mlflow.deployments import BaseDeploymentClient
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import INVALID_PARAMETER_VALUE, RESOURCE_DOES_NOT_EXIST

from slipway_client import Client
from slipway_client.errors import Failed, InvalidInput, NotFound, SlipwayError
from slipway_client.mlflow_plugin import config as config_reader
from slipway_client.mlflow_plugin.artifacts import model_files
from slipway_client.mlflow_plugin.predictions import PredictionsByName, inputs_of
from slipway_client.settings import merge_settings
from slipway_client.types import Change, Deployment, Version

_PLAIN_HOSTS: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_MOST_LABEL_CHARACTERS: Final = 200
_log = logging.getLogger(__name__)


def url_of(target_uri: str) -> str:
    """Return the portal's URL for `slipway://host[:port]`: https, or http for this machine. Raises InvalidInput."""
    parts = urlsplit(target_uri)
    if parts.scheme != "slipway" or not parts.hostname:
        raise InvalidInput(
            f"{target_uri!r} is not a target. Use slipway://host or slipway://host:port."
        )
    scheme = "http" if parts.hostname in _PLAIN_HOSTS else "https"
    return f"{scheme}://{parts.netloc}{parts.path}".rstrip("/")


class SlipwayDeploymentClient(BaseDeploymentClient):  # type: ignore[misc]  # MLflow is not installed where types are checked
    """Names of deployments are team/name, or name in the team of `-C model=team/model`."""

    def __init__(self, target_uri: str, client: Client | None = None) -> None:
        super().__init__(target_uri)
        with _as_mlflow_errors():
            self._client = client or Client(url_of(target_uri))

    def create_deployment(
        self,
        name: str,
        model_uri: str,
        flavor: str | None = None,
        config: Mapping[str, Any] | None = None,
        endpoint: str | None = None,
    ) -> dict[str, Any]:
        """Upload the model's files, unless they are a version already, and request a deployment.

        With wait=true it returns when somebody has approved it and it is ready.
        """
        settings = config_reader.read(config)
        with _as_mlflow_errors():
            version = self._push(model_uri, settings)
            change = self._client.deployments.request(
                version=version.id,
                cluster=self._client.account.cluster(str(settings.get("cluster", ""))).id,
                name=name.rpartition("/")[2],
                spec=config_reader.spec_of(settings),
                environment=str(settings.get("environment", "production")),
                comment=str(settings.get("comment", "")) or f"from MLflow: {model_uri}",
            )
            return self._finish(change, settings, flavor or version.format)

    def update_deployment(
        self,
        name: str,
        model_uri: str | None = None,
        flavor: str | None = None,
        config: Mapping[str, Any] | None = None,
        endpoint: str | None = None,
    ) -> dict[str, Any]:
        """Request a canary of the model. Another version never replaces one that serves at once."""
        settings = config_reader.read(config)
        if model_uri is None:
            raise MlflowException("Name the new model with -m.", INVALID_PARAMETER_VALUE)
        with _as_mlflow_errors():
            deployment = self._get(name, settings)
            settings.setdefault("model", f"{deployment.team}/{_model_of(deployment)}")
            version = self._push(model_uri, settings)
            spec = config_reader.spec_of(settings)
            change = self._client.deployments.canary(
                deployment.id,
                version.id,
                spec=merge_settings(_stable_spec(deployment), spec) if spec else None,
                comment=str(settings.get("comment", "")) or f"from MLflow: {model_uri}",
            )
            return self._finish(change, settings, flavor or version.format)

    def delete_deployment(
        self, name: str, config: Mapping[str, Any] | None = None, endpoint: str | None = None
    ) -> None:
        """Request its retirement; one that does not exist counts as deleted, as MLflow defines it."""
        settings = config_reader.read(config)
        with _as_mlflow_errors():
            try:
                deployment = self._get(name, settings)
            except NotFound:
                return
            change = self._client.deployments.request_change(
                deployment.id, "retire", comment=str(settings.get("comment", "")) or "from MLflow"
            )
            self._finish(change, settings, None)

    def list_deployments(self, endpoint: str | None = None) -> list[dict[str, Any]]:
        with _as_mlflow_errors():
            return [_describe(item) for item in self._client.deployments.list()]

    def get_deployment(self, name: str, endpoint: str | None = None) -> dict[str, Any]:
        with _as_mlflow_errors():
            return _describe(self._get(name, {}))

    def predict(
        self, deployment_name: str | None = None, inputs: Any = None, endpoint: str | None = None
    ) -> Any:
        """Send one inference request. `inputs` are arrays or nested lists by input name, or a DataFrame or array
        for a model with one input. The outputs are arrays by name.
        """
        if deployment_name is None:
            raise MlflowException("Name the deployment.", INVALID_PARAMETER_VALUE)
        with _as_mlflow_errors():
            deployment = self._get(deployment_name, {})
            stable = deployment.desired.stable
            version = self._client.versions.get(stable.version_id) if stable else None
            signature = version.signature if version else None
            named = inputs_of(inputs, signature.inputs if signature else ())
            return PredictionsByName(self._client.call(deployment, named))

    def _push(self, model_uri: str, settings: Mapping[str, Any]) -> Version:
        model = str(settings.get("model", ""))
        if not model:
            raise InvalidInput("Name the model in Slipway: -C model=team/model.")
        folder = Path(mlflow.artifacts.download_artifacts(artifact_uri=model_uri))
        with model_files(folder) as path:
            return self._client.push(
                path,
                model,
                metadata={"labels": {"mlflow_model_uri": model_uri[:_MOST_LABEL_CHARACTERS]}},
                seconds=float(settings.get("timeout", 1800)),
            )

    def _finish(
        self, change: Change, settings: Mapping[str, Any], flavor: str | None
    ) -> dict[str, Any]:
        if settings.get("wait"):
            seconds = float(settings.get("timeout", 1800))
            change = self._client.changes.wait(change.id, seconds=seconds)
            if change.kind in ("deploy", "start"):
                self._client.deployments.wait_until_ready(change.deployment_id, seconds=seconds)
        _log.warning("Change request %s is %s.", change.id, change.state)
        return {
            "name": f"{change.team}/{change.deployment}",
            "flavor": flavor,
            "change": change.id,
            "state": change.state,
        }

    def _get(self, name: str, settings: Mapping[str, Any]) -> Deployment:
        team = str(settings.get("model", "")).partition("/")[0]
        if "/" in name or team:
            return self._client.deployments.get(name if "/" in name else f"{team}/{name}")
        matches = [item for item in self._client.deployments.list(search=name) if item.name == name]
        if len(matches) > 1:
            raise InvalidInput(f"Several teams have {name!r}. Use team/name.")
        if not matches:
            raise NotFound(
                404, {"detail": f"There is no deployment {name!r}.", "code": "not_found"}
            )
        return matches[0]


class _as_mlflow_errors:  # noqa: N801  reads as a statement
    """Errors of the client as MLflow's own, with their message."""

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, NotFound):
            raise MlflowException(str(error), RESOURCE_DOES_NOT_EXIST) from error
        if isinstance(error, SlipwayError):
            raise MlflowException(str(error), INVALID_PARAMETER_VALUE) from error


def _stable_spec(deployment: Deployment) -> dict[str, Any]:
    """Return the spec of the stable revision without what the portal adds. Empty if there is none."""
    stable = deployment.desired.stable
    given = dict(stable.spec) if stable else {}
    return {name: item for name, item in given.items() if name not in ("image", "schema")}


def _model_of(deployment: Deployment) -> str:
    stable = deployment.desired.stable
    if stable is None:
        raise Failed(f"{deployment} has no serving revision yet.")
    return stable.version.rpartition(":")[0]


def _describe(deployment: Deployment) -> dict[str, Any]:
    stable = deployment.desired.stable
    return {
        "name": str(deployment),
        "state": deployment.state,
        "url": deployment.url,
        "version": stable.version if stable else None,
        "environment": deployment.environment,
    }


def run_local(
    name: str, model_uri: str, flavor: str | None = None, config: Mapping[str, Any] | None = None
) -> None:
    """Required by MLflow's plugin interface."""
    raise MlflowException("Slipway does not run models on this machine. Try them with `make demo`.")


def target_help() -> str:
    """Shown by `mlflow deployments help -t slipway`."""
    return (
        "slipway://host[:port] is the portal's address. Set SLIPWAY_TOKEN or run `slipway login`.\n"
        "create: -C model=team/model (required), settings of the deployment such as\n"
        "  -C instance_type=g5.xlarge -C memory=8Gi -C scaling.kind=hpa, and -C cluster=…,\n"
        "  -C environment=…, -C comment=…, -C wait=true. Names are team/name.\n"
        "Callers need a key, unless -C network.access=open states an open address. predict sends that of "
        "SLIPWAY_CALLER_KEY.\n"
        "update requests a canary of the new model, delete the retirement; both need an approval."
    )
