"""What works on a cluster. Three answers to each question: there, not there, not known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from fleet.clusters.domain.capability_descriptions import (
    ENGINE_NEEDS,
    FEATURE_DESCRIPTIONS,
    OPTION_NEEDS,
)
from fleet.clusters.domain.node_pools import NodePool

FEATURES: tuple[str, ...] = tuple(FEATURE_DESCRIPTIONS)
NOT_CHECKED = "The capabilities of the cluster have not been checked yet."


@dataclass(frozen=True, slots=True)
class Feature:
    """`is_there` None is not known; `why` then says what stood in the way of looking."""

    is_there: bool | None
    version: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class GpuOffer:
    """A GPU resource that nodes offer now. `memory_mib` is what one unit has to itself, or shares.

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
    """`ok` None is not known; `why` is one sentence unless it simply works."""

    ok: bool | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """`gpu_offers` None is not known. `legacy_engines` is all that rows of an older probe say."""

    features: Mapping[str, Feature] = field(default_factory=dict)
    gpu_offers: tuple[GpuOffer, ...] | None = None
    gpus_why: str = ""
    # Of Karpenter; None where there is none, or they may not be listed.
    node_pools: tuple[NodePool, ...] | None = None
    probed_at: str = ""
    # Engines that cannot run there whatever is installed, and why.
    excluded_engines: Mapping[str, str] = field(default_factory=dict)
    legacy_engines: tuple[str, ...] | None = None
    legacy_notes: tuple[str, ...] = ()

    def feature(self, name: str) -> Feature:
        return self.features.get(name, Feature(None, why=NOT_CHECKED))

    def offers_engine(self, engine: str) -> Offer:
        if not self.features and self.legacy_engines is not None:
            is_offered = engine in self.legacy_engines
            return Offer(is_offered, "" if is_offered else " ".join(self.legacy_notes))
        if engine in self.excluded_engines:
            return Offer(ok=False, why=self.excluded_engines[engine])
        needs = ENGINE_NEEDS.get(engine)
        if needs is None:
            return Offer(None, f"Unknown engine: {engine}.")
        return self._all(("kubernetes", *needs))

    def offers(self, option: str) -> Offer:
        """An option of OPTION_NEEDS, or a GPU resource such as nvidia.com/mig-1g.10gb."""
        if "/" in option:
            return self._offers_gpu(option)
        found = [self._all(way) for way in OPTION_NEEDS[option]]
        return max(found, key=lambda offer: {True: 2, None: 1, False: 0}[offer.ok])

    def _all(self, names: Sequence[str]) -> Offer:
        """The worst answer counts, and says what is the matter."""
        for wanted in (False, None):
            for name in names:
                if self.feature(name).is_there is wanted:
                    return Offer(wanted, sentence(name, self.feature(name)))
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
    def version(self) -> str:
        return self.feature("kubernetes").version

    @property
    def engines(self) -> list[str] | None:
        """None until the cluster was asked."""
        if not self.features:
            return None if self.legacy_engines is None else list(self.legacy_engines)
        return [engine for engine in ENGINE_NEEDS if self.offers_engine(engine).ok]

    @property
    def notes(self) -> list[str]:
        """What is missing or not known, and what that rules out."""
        if not self.features:
            return list(self.legacy_notes)
        found = [
            sentence(name, self.feature(name))
            for name in FEATURES
            if not self.feature(name).is_there
        ]
        if self.gpu_offers is None:
            found.append(self.gpus_why or NOT_CHECKED)
        elif not self.gpu_offers:
            found.append("No running node offers GPUs.")
        found += dict.fromkeys(self.excluded_engines.values())
        return found

    def to_json(self) -> dict[str, Any]:
        """`engines` and `notes` are written for readers that know nothing of features."""
        offers = self.gpu_offers
        return {
            "version": self.version,
            "features": {name: asdict(one) for name, one in self.features.items()},
            "gpu_offers": None if offers is None else [asdict(offer) for offer in offers],
            "gpus_why": self.gpus_why,
            "node_pools": None
            if self.node_pools is None
            else [pool.to_json() for pool in self.node_pools],
            "engines": self.engines,
            "notes": self.notes,
            "probed_at": self.probed_at,
            "excluded_engines": dict(self.excluded_engines),
        }

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Capabilities:
        """Also of {} (never asked) and of rows written before there were features."""
        known = {
            name: one
            for name, one in (raw.get("features") or {}).items()
            if name in FEATURE_DESCRIPTIONS
        }
        offers, engines = raw.get("gpu_offers"), raw.get("engines")
        pools = raw.get("node_pools")
        return cls(
            features={name: Feature(**one) for name, one in known.items()},
            gpu_offers=None if offers is None else tuple(GpuOffer(**offer) for offer in offers),
            gpus_why=raw.get("gpus_why", ""),
            node_pools=None if pools is None else tuple(map(NodePool.from_json, pools)),
            probed_at=raw.get("probed_at", ""),
            excluded_engines=raw.get("excluded_engines") or {},
            legacy_engines=None if known or engines is None else tuple(engines),
            legacy_notes=() if known else tuple(raw.get("notes") or ()),
        )


def sentence(name: str, feature: Feature) -> str:
    words = FEATURE_DESCRIPTIONS[name]
    if feature.is_there:
        return ""
    if feature.is_there is None:
        return f"Could not check {words.title}. {feature.why}".strip()
    if not feature.why:
        return f"{words.title} is not installed. It is needed for {words.purpose}."
    return f"{feature.why.rstrip('.')}. {words.title} is needed for {words.purpose}."
