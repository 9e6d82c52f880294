"""The probe of the installed KServe: its kinds, Knative mode, and settings that change what works."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from fleet.clusters.domain import knative_flags, kserve_releases
from fleet.clusters.domain.capabilities import Feature
from fleet.clusters.domain.capability_descriptions import PIPELINE_KEY_HEADER
from fleet.clusters.services.installed_versions import read_version
from fleet.clusters.services.unknown_features import or_unknown
from fleet.kube.domain.errors import NotAllowed, ObjectNotFound
from fleet.kube.domain.resource_types import ResourceType
from fleet.kube.gateways.kube_client import KubeClient

_GROUP = "serving.kserve.io"
_ALPHA = (f"{_GROUP}/v1alpha2", f"{_GROUP}/v1alpha1")
_KINDS: Mapping[str, str] = {
    "llm-inference-service": "llminferenceservices",
    "local-model-cache": "localmodelcaches",
    "inference-graph": "inferencegraphs",
}
_KNATIVE = "serving.knative.dev"
_CONFIG_MAP = ResourceType("v1", "ConfigMap", "configmaps")
_ROUTERS = "KServe's routers"
_PROPAGATE = (
    f'add it to "headers": {{"propagate": ["{PIPELINE_KEY_HEADER}"]}} under router in ConfigMap '
    "inferenceservice-config of kserve"
)
_TLS = "enableLLMInferenceServiceTLS"


def read_features(
    client: KubeClient,
    kserve: Feature,
    groups: Mapping[str, list[str]],
    flags: Mapping[str, str] | None,
) -> dict[str, Feature]:
    """`flags` are Knative's, as `read_knative_flags` returns them."""
    read = _read_config(client) if kserve.is_there else {}
    config = read or {}
    features = {name: _kserve_feature(client, plural, groups) for name, plural in _KINDS.items()}
    features["llm-inference-service"] = _without_tls(features["llm-inference-service"], config)
    features["image-weights"] = _image_weights(kserve, config)
    features["header-propagation"] = _header_propagation(kserve, read)
    features["kserve-knative"] = _knative(client, kserve, groups, flags, config)
    return features


def _read_config(client: KubeClient) -> Mapping[str, Any] | None:
    """Return KServe's settings by section. None if they cannot be read."""
    try:
        config_map = client.get(_CONFIG_MAP, "kserve", "inferenceservice-config")
    except (NotAllowed, ObjectNotFound):
        return None
    sections = {}
    for name, text in (config_map.get("data") or {}).items():
        try:
            sections[name] = json.loads(text)
        except ValueError:
            continue
    return sections


def _setting(config: Mapping[str, Any], section: str, name: str) -> Any:
    values = config.get(section)
    return values.get(name) if isinstance(values, dict) else None


def _without_tls(feature: Feature, config: Mapping[str, Any]) -> Feature:
    """KServe signs a certificate for each service and keeps its authority in a Secret of the team,
    which the portal does not read: so no BackendTLSPolicy can name it, and the gateway, golden
    requests and metrics would all speak HTTP to a server that takes HTTPS only.
    """
    if not feature.is_there or not _setting(config, "ingress", _TLS):
        return feature
    why = (
        "KServe serves it over TLS with certificates that the gateway cannot verify: set "
        f"{_TLS} to false under ingress in ConfigMap inferenceservice-config of kserve"
    )
    return Feature(is_there=False, version=feature.version, why=why)


def _header_propagation(kserve: Feature, config: Mapping[str, Any] | None) -> Feature:
    """Whether each router passes on the header of a pipeline's key. A pattern is searched for, as in Go."""
    if not kserve.is_there:
        return Feature(is_there=kserve.is_there, why=kserve.why or "KServe is not installed")
    if config is None:
        why = "The portal cannot read ConfigMap inferenceservice-config of kserve."
        return Feature(None, why=why)
    headers = _setting(config, "router", "headers")
    patterns = headers.get("propagate") if isinstance(headers, dict) else None
    # KServe joins the list with commas and splits it again.
    listed = ",".join(map(str, patterns)).split(",") if isinstance(patterns, list) else []
    if any(_is_found(pattern, PIPELINE_KEY_HEADER) for pattern in listed if pattern):
        return Feature(is_there=True)
    lower = PIPELINE_KEY_HEADER.lower()
    if any(_is_found(pattern.lower(), lower) for pattern in listed if pattern):
        why = f"{_ROUTERS} look for {PIPELINE_KEY_HEADER} in just this spelling: {_PROPAGATE}"
        return Feature(is_there=False, why=why)
    return Feature(
        is_there=False, why=f"{_ROUTERS} do not pass on {PIPELINE_KEY_HEADER}: {_PROPAGATE}"
    )


def _is_found(pattern: str, name: str) -> bool:
    try:
        return re.search(pattern, name) is not None
    except re.error:
        return False


def _image_weights(kserve: Feature, config: Mapping[str, Any]) -> Feature:
    """Its version is how KServe brings the image into the pod: modelcar (a container) or native (a
    volume).
    """
    if not kserve.is_there:
        return Feature(is_there=kserve.is_there, why=kserve.why or "KServe is not installed")
    section = config.get("storageInitializer")
    if not isinstance(section, dict):
        return Feature(
            None, why="The portal cannot read ConfigMap inferenceservice-config of kserve."
        )
    release = kserve_releases.parse(kserve.version)
    is_modelcar = section.get("enableModelcar")
    mode = ""
    if release is None or release >= kserve_releases.IMAGE_VOLUMES:
        mode = str(section.get("ociModelMode") or "")
        is_modelcar = is_modelcar or section.get("enableOciModelSupport")
    if not mode and not is_modelcar:
        return Feature(is_there=False, why="KServe has images of weights switched off")
    return Feature(is_there=True, version=mode or "modelcar")


def _kserve_feature(client: KubeClient, plural: str, groups: Mapping[str, list[str]]) -> Feature:
    if _GROUP not in groups:
        return Feature(is_there=False)

    def check() -> Feature:
        for version in _ALPHA:
            is_served = version.partition("/")[2] in groups[_GROUP]
            if is_served and plural in client.resources(version):
                return Feature(is_there=True, version=version.partition("/")[2])
        return Feature(is_there=False, why="The installed KServe does not include it")

    return or_unknown(check, f"get /apis/{_GROUP}")


def read_knative_flags(
    client: KubeClient, groups: Mapping[str, list[str]]
) -> Mapping[str, str] | None:
    if _KNATIVE not in groups:
        return None
    try:
        config_map = client.get(_CONFIG_MAP, *knative_flags.CONFIG_MAP)
    except (NotAllowed, ObjectNotFound):
        return None
    return knative_flags.parse(config_map.get("data") or {})


def _knative(
    client: KubeClient,
    kserve: Feature,
    groups: Mapping[str, list[str]],
    flags: Mapping[str, str] | None,
    config: Mapping[str, Any],
) -> Feature:
    if _KNATIVE not in groups:
        return Feature(is_there=False, why="Knative Serving is not installed")
    if not kserve.is_there:
        return Feature(is_there=kserve.is_there, why=kserve.why or "KServe is not installed")
    version = read_version(client, "kserve-knative") or groups[_KNATIVE][0]
    refused = (
        [] if flags is None else knative_flags.list_disabled(flags, knative_flags.ALWAYS_NEEDED)
    )
    if refused:
        why = f"Knative refuses the pods of models: {knative_flags.describe_fix(refused)}"
        return Feature(is_there=False, version=version, why=why)
    # For information only: the portal always sets the mode on its objects.
    mode = _setting(config, "deploy", "defaultDeploymentMode")
    why = f"KServe uses {mode} mode by default." if mode else ""
    return Feature(is_there=True, version=version, why=why)
