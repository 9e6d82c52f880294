"""Whether the cluster's Gateway can choose a deployment by the model that a body names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import yaml

from fleet.clusters.domain import envoy_gateway
from fleet.clusters.domain.capabilities import API_KEYS, ISTIO_TOKENS, Feature
from fleet.clusters.services.installed_versions import read_version
from fleet.clusters.services.key_check_probe import KeyCheck
from fleet.kube.domain.errors import NotAllowed, ObjectNotFound
from fleet.kube.domain.resource_types import ResourceType
from fleet.kube.gateways.kube_client import KubeClient

FEATURE: Final = "model-routing"
_API: Final = "gateway.envoyproxy.io/v1alpha1"
_CONFIG_MAP: Final = ResourceType("v1", "ConfigMap", "configmaps")
_ISTIO: Final = (
    "The Gateway is Istio's: only an EnvoyFilter could read the model of a body, and a role that may write one may "
    "change everything behind that Gateway"
)


def read(client: KubeClient, key_check: KeyCheck, *, is_local: bool) -> Feature:
    if key_check.kind == ISTIO_TOKENS:
        return Feature(is_there=False, why=_ISTIO)
    if key_check.kind != API_KEYS:
        return Feature(is_there=key_check.feature.is_there, why=key_check.feature.why)
    if "envoyextensionpolicies" not in client.resources(_API):
        return Feature(is_there=False, why="The cluster serves no EnvoyExtensionPolicy")
    if is_local:
        return Feature(is_there=True)
    version = read_version(client, FEATURE)
    answer, why = envoy_gateway.runs_scripts(version, _extension_settings(client))
    return Feature(is_there=answer, version=version, why=why)


def _extension_settings(client: KubeClient) -> Mapping[str, Any] | None:
    """Return the `extensionApis` of Envoy Gateway's configuration. None if it cannot be read."""
    try:
        config_map = client.get(_CONFIG_MAP, *envoy_gateway.CONFIG_MAP)
        text = (config_map.get("data") or {}).get(envoy_gateway.CONFIG_KEY, "")
        settings = yaml.safe_load(text)
    except (NotAllowed, ObjectNotFound, yaml.YAMLError):
        return None
    if not isinstance(settings, Mapping):
        return None
    extensions = settings.get("extensionApis") or {}
    return extensions if isinstance(extensions, Mapping) else None
