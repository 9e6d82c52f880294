"""How the cluster's Gateway checks the keys of callers: by comparing them, by verifying signed ones, or not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fleet.clusters.domain.capabilities import API_KEYS, ISTIO_TOKENS, Feature
from fleet.clusters.services.gateway_probe import GATEWAY, GATEWAY_CLASS
from fleet.clusters.services.unknown_features import or_unknown
from fleet.kube.domain.errors import ObjectNotFound
from fleet.kube.gateways.kube_client import KubeClient

_ENVOY_GATEWAY: Final = "gateway.envoyproxy.io"
_ISTIO: Final = "security.istio.io"
# Istio 1.22, the first whose policies name a Gateway as their target, serves this version.
_ISTIO_VERSION: Final = "v1"
# Controllers whose Gateways check API keys of SecurityPolicies: Envoy Gateway's, the embedded cluster's.
_COMPARES: Final = frozenset(
    {"gateway.envoyproxy.io/gatewayclass-controller", "slipway.dev/local-envoy"}
)
_VERIFIES: Final = "istio.io/gateway-controller"


@dataclass(frozen=True, slots=True)
class KeyCheck:
    """How a Gateway checks keys. `kind` is API_KEYS, ISTIO_TOKENS, or empty where the Gateway checks none or that
    is not known.
    """

    feature: Feature
    kind: str = ""


def read(
    client: KubeClient,
    gateway: tuple[str, str],
    api: Feature,
    groups: Mapping[str, list[str]],
) -> KeyCheck:
    """A policy that another controller ignores would leave the address open, so the controller decides."""
    if not api.is_there:
        why = api.why or "The Gateway API is not installed"
        return KeyCheck(Feature(is_there=api.is_there, why=why))
    if _ENVOY_GATEWAY not in groups and _ISTIO not in groups:
        return KeyCheck(Feature(is_there=False, why="Neither Envoy Gateway nor Istio is installed"))
    kinds: list[str] = []

    def check() -> Feature:
        name = client.get(GATEWAY, *gateway)["spec"]["gatewayClassName"]
        try:
            gateway_class = client.get(GATEWAY_CLASS, None, name)
        except ObjectNotFound:
            return Feature(is_there=False, why=f"GatewayClass {name} does not exist")
        controller = gateway_class["spec"].get("controllerName", "")
        if controller in _COMPARES and _ENVOY_GATEWAY in groups:
            kinds.append(API_KEYS)
            return Feature(is_there=True, version=groups[_ENVOY_GATEWAY][0])
        if controller == _VERIFIES:
            return _of_istio(groups.get(_ISTIO, []), kinds)
        why = f"GatewayClass {name} is controlled by {controller}, not by Envoy Gateway or Istio"
        return Feature(is_there=False, why=why)

    feature = or_unknown(check, "get gatewayclasses.gateway.networking.k8s.io")
    return KeyCheck(feature, *kinds)


def check_jwt(check: KeyCheck) -> Feature:
    """Whether it verifies tokens of identity providers and decides by their claims."""
    if check.kind == ISTIO_TOKENS:
        why = "On Istio the portal writes policies for the keys that it signs only"
        return Feature(is_there=False, why=why)
    return check.feature


def _of_istio(versions: list[str], kinds: list[str]) -> Feature:
    if _ISTIO_VERSION not in versions:
        why = f"The cluster serves no {_ISTIO}/{_ISTIO_VERSION}: Istio is older than 1.22"
        return Feature(is_there=False, why=why)
    kinds.append(ISTIO_TOKENS)
    return Feature(
        is_there=True,
        version=_ISTIO_VERSION,
        why="Istio verifies keys that the portal signs. It enforces no limits of keys.",
    )
