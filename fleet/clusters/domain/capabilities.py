"""The capabilities of a cluster. Each feature is installed, missing or unknown."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from fleet.clusters.domain import monitor_selection
from fleet.clusters.domain.capability_descriptions import (
    ENGINE_NEEDS,
    FEATURE_DESCRIPTIONS,
    OPTION_NEEDS,
)
from fleet.clusters.domain.monitor_selection import PrometheusSelection
from fleet.clusters.domain.node_pools import NodePool
from fleet.clusters.domain.provisioner import NodeLabels
from fleet.clusters.domain.queues import Kueue

FEATURES: tuple[str, ...] = tuple(FEATURE_DESCRIPTIONS)
# How a gateway checks the keys of callers: compared with a Secret, or verified as the portal's tokens.
API_KEYS = "api-keys"
ISTIO_TOKENS = "istio-tokens"
NOT_CHECKED = "The capabilities of the cluster have not been checked yet."


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature of a cluster. `is_there` is None if that is unknown; `why` then says what kept the probe from
    checking it.
    """

    is_there: bool | None
    version: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class GpuOffer:
    """A GPU resource that nodes offer now. `memory_mib` is the memory of one unit, possibly shared.

    `sharing` is whole, mig, mps or shared; `units` is the sum over the nodes.
    """

    resource: str
    product: str
    memory_mib: int
    nodes: int
    units: int
    sharing: str = "whole"


@dataclass(frozen=True, slots=True)
class Offer:
    """Whether the cluster offers something. `ok` None is not known; `why` is empty when it is
    offered.
    """

    ok: bool | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The capabilities of a cluster. `gpu_offers` is None if they are unknown."""

    features: Mapping[str, Feature] = field(default_factory=dict)
    gpu_offers: tuple[GpuOffer, ...] | None = None
    gpus_why: str = ""
    # Karpenter's node pools; None without Karpenter or without permission to list them.
    node_pools: tuple[NodePool, ...] | None = None
    # The operator's Prometheus servers; None without the operator or permission to list them.
    prometheuses: tuple[PrometheusSelection, ...] | None = None
    # Knative's flags for pods that are set; None without Knative or permission to read them.
    knative_flags: Mapping[str, str] | None = None
    # None without Kueue.
    kueue: Kueue | None = None
    probed_at: str = ""
    # Engines that this cluster can never run, with the reason.
    excluded_engines: Mapping[str, str] = field(default_factory=dict)
    # What is different here about an engine that it does run.
    engine_notes: Mapping[str, str] = field(default_factory=dict)
    # Addresses from which the API server reaches pods, sorted; None is not known.
    api_servers: tuple[str, ...] | None = None
    # API_KEYS or ISTIO_TOKENS; empty where the gateway checks no keys, or that was never known.
    key_check: str = ""
    # The labels of nodes that pods may require here.
    node_labels: NodeLabels = field(default_factory=NodeLabels)

    @property
    def verifies_tokens(self) -> bool:
        return self.key_check == ISTIO_TOKENS

    def keeping_known(self, before: Capabilities) -> Capabilities:
        """Keep what was known of the gateway's check and the API server's addresses if this probe could not tell:
        without them the policies that close addresses would be removed, and metrics cut off.
        """
        is_known = self.feature("caller-keys").is_there is True
        return replace(
            self,
            key_check=self.key_check if is_known else before.key_check,
            api_servers=before.api_servers if self.api_servers is None else self.api_servers,
        )

    def feature(self, name: str) -> Feature:
        return self.features.get(name, Feature(None, why=NOT_CHECKED))

    def offers_engine(self, engine: str) -> Offer:
        if engine in self.excluded_engines:
            return Offer(ok=False, why=self.excluded_engines[engine])
        needs = ENGINE_NEEDS.get(engine)
        if needs is None:
            return Offer(None, f"Unknown engine: {engine}.")
        # Where pods cannot be listed, network policies may still be right.
        is_cut_off = self.feature("gateway-proxies").is_there is False
        return self._all(("kubernetes", *(["gateway-proxies"] if is_cut_off else []), *needs))

    def offers(self, option: str) -> Offer:
        """Whether it offers an option of OPTION_NEEDS, or a GPU resource such as
        nvidia.com/mig-1g.10gb.
        """
        if "/" in option:
            return self._offers_gpu(option)
        offers = [self._all(names) for names in OPTION_NEEDS[option]]
        return max(offers, key=lambda offer: {True: 2, None: 1, False: 0}[offer.ok])

    def _all(self, names: Sequence[str]) -> Offer:
        """Offer that needs all of these features; the worst of them decides and gives the reason."""
        for is_there in (False, None):
            for name in names:
                if self.feature(name).is_there is is_there:
                    return Offer(is_there, describe_feature(name, self.feature(name)))
        return Offer(ok=True)

    def _offers_gpu(self, resource: str) -> Offer:
        if self.gpu_offers is None:
            return Offer(None, self.gpus_why or NOT_CHECKED)
        if any(offer.resource == resource for offer in self.gpu_offers):
            return Offer(ok=True)
        if self.feature("karpenter").is_there is not False:
            return Offer(None, f"No running node offers {resource}. A node that starts later may.")
        return Offer(ok=False, why=f"No node offers {resource}.")

    @property
    def monitor_labels(self) -> dict[str, str]:
        """The labels by which the cluster's Prometheus selects a ServiceMonitor."""
        chosen = monitor_selection.choose(self.prometheuses or ())
        return {} if chosen is None else chosen.labels_for("ServiceMonitor") or {}

    @property
    def api_server_cidrs(self) -> tuple[str, ...]:
        """The CIDR block of each of the API server's addresses. Empty if they are unknown."""
        return tuple(str(ipaddress.ip_network(address)) for address in self.api_servers or ())

    @property
    def prometheus_namespaces(self) -> tuple[str, ...]:
        """The namespaces of the operator's Prometheus servers, sorted."""
        return tuple(sorted({selection.namespace for selection in self.prometheuses or ()}))

    @property
    def version(self) -> str:
        return self.feature("kubernetes").version

    @property
    def engines(self) -> list[str] | None:
        """The engines that the cluster offers. None until it was probed."""
        if not self.features:
            return None
        return [engine for engine in ENGINE_NEEDS if self.offers_engine(engine).ok]

    @property
    def notes(self) -> list[str]:
        """The notes: one sentence for each feature that is missing or unknown."""
        if not self.features:
            return []
        notes = [
            describe_feature(name, self.feature(name))
            for name in FEATURES
            if not self.feature(name).is_there
        ]
        if self.gpu_offers is None:
            notes.append(self.gpus_why or NOT_CHECKED)
        elif not self.gpu_offers:
            notes.append("No running node offers GPUs.")
        notes += dict.fromkeys([*self.excluded_engines.values(), *self.engine_notes.values()])
        return notes

    def to_json(self) -> dict[str, Any]:
        """Return the capabilities as the column and the REST API hold them. {} until the cluster is probed.
        `engines` and `notes` follow from the rest.
        """
        if self == Capabilities():
            return {}
        offers = self.gpu_offers
        return {
            "version": self.version,
            "features": {name: asdict(feature) for name, feature in self.features.items()},
            "gpu_offers": None if offers is None else [asdict(offer) for offer in offers],
            "gpus_why": self.gpus_why,
            "node_pools": None
            if self.node_pools is None
            else [pool.to_json() for pool in self.node_pools],
            "prometheuses": None
            if self.prometheuses is None
            else [selection.to_json() for selection in self.prometheuses],
            "knative_flags": None if self.knative_flags is None else dict(self.knative_flags),
            "kueue": None if self.kueue is None else self.kueue.to_json(),
            "engines": self.engines,
            "notes": self.notes,
            "probed_at": self.probed_at,
            "excluded_engines": dict(self.excluded_engines),
            "engine_notes": dict(self.engine_notes),
            "key_check": self.key_check,
            "api_servers": None if self.api_servers is None else list(self.api_servers),
            "node_labels": self.node_labels.to_json(),
        }

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Capabilities:
        """Read the column; {} is a cluster that was never probed. Unknown features are ignored."""
        features = raw.get("features") or {}
        offers, pools = raw.get("gpu_offers"), raw.get("node_pools")
        prometheuses = raw.get("prometheuses")
        return cls(
            features={name: Feature(**features[name]) for name in FEATURES if name in features},
            gpu_offers=None if offers is None else tuple(GpuOffer(**offer) for offer in offers),
            gpus_why=raw.get("gpus_why", ""),
            node_pools=None if pools is None else tuple(map(NodePool.from_json, pools)),
            prometheuses=None
            if prometheuses is None
            else tuple(map(PrometheusSelection.from_json, prometheuses)),
            knative_flags=raw.get("knative_flags"),
            kueue=Kueue.from_json(raw["kueue"]) if raw.get("kueue") else None,
            probed_at=raw.get("probed_at", ""),
            excluded_engines=raw.get("excluded_engines") or {},
            engine_notes=raw.get("engine_notes") or {},
            key_check=raw.get("key_check", ""),
            api_servers=None if raw.get("api_servers") is None else tuple(raw["api_servers"]),
            node_labels=NodeLabels.from_json(raw.get("node_labels") or {}),
        )


def describe_feature(name: str, feature: Feature) -> str:
    description = FEATURE_DESCRIPTIONS[name]
    if feature.is_there:
        return ""
    if feature.is_there is None:
        return f"Could not check {description.title}. {feature.why}".strip()
    if not feature.why:
        return f"{description.title} is not installed. It is needed for {description.purpose}."
    return f"{feature.why.rstrip('.')}. {description.title} is needed for {description.purpose}."
