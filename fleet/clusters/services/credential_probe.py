"""Whether the cluster's Gateway can put a key on the requests of one route."""

from __future__ import annotations

import re
from typing import Final

from fleet.clusters.domain.capabilities import API_KEYS, ISTIO_TOKENS, Feature
from fleet.clusters.services.installed_versions import read_version
from fleet.clusters.services.key_check_probe import KeyCheck
from fleet.kube.gateways.kube_client import KubeClient

_API: Final = "gateway.envoyproxy.io/v1alpha1"
# Its Deployment gives the version of Envoy Gateway.
_CONTROLLER: Final = "model-routing"
_OLDEST: Final = (1, 4)
_RELEASE: Final = re.compile(r"v?(\d+)\.(\d+)\b")


def read(client: KubeClient, key_check: KeyCheck, *, is_local: bool) -> Feature:
    if key_check.kind == ISTIO_TOKENS:
        return Feature(is_there=False, why="The Gateway is Istio's, whose routes add no Secret")
    if key_check.kind != API_KEYS:
        return Feature(is_there=key_check.feature.is_there, why=key_check.feature.why)
    if "httproutefilters" not in client.resources(_API):
        return Feature(is_there=False, why="The cluster serves no HTTPRouteFilter")
    if is_local:
        return Feature(is_there=True)
    return _of_release(read_version(client, _CONTROLLER))


def _of_release(version: str) -> Feature:
    match = _RELEASE.match(version)
    if match is None:
        return Feature(None, why="The version of Envoy Gateway cannot be read.")
    if (int(match[1]), int(match[2])) < _OLDEST:
        why = f"Envoy Gateway {version} is older than 1.4"
        return Feature(is_there=False, version=version, why=why)
    return Feature(is_there=True, version=version)
