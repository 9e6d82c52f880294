"""The cluster, engine and GPU shares for a version: chosen by the person, or the first that fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from deployments.changes.web import gpu_choice, request_body
from deployments.models import ModelVersion
from deployments.registry.domain import loading
from deployments.sizing.domain.ranking import Advice
from deployments.spec.domain import cluster_support
from deployments.spec.domain.accelerators import neuron_rules
from deployments.spec.domain.engines import LLM_ENGINES, ONNX_ENGINES
from deployments.spec.domain.placement import catalogue
from fleet.capacity.selectors import capacity
from fleet.capacity.selectors.capacity import GpuShare
from fleet.clusters.selectors.clusters import ClusterInfo
from fleet.gpus.domain import offers


@dataclass(frozen=True, slots=True)
class ServingPlace:
    """A cluster with an engine, the GPU shares that it offers, those of the placement, and the advice on them."""

    cluster: ClusterInfo | None
    engine: str
    listed: list[GpuShare] = field(default_factory=list)
    shares: list[GpuShare] = field(default_factory=list)
    advice: Advice | None = None

    @property
    def has_fit(self) -> bool:
        """Whether a GPU fits the version. With an unknown need every GPU might."""
        return bool(self.shares) if self.advice is None else bool(self.advice.ranked)


def choose(
    version: ModelVersion | None,
    known: Sequence[ClusterInfo],
    typed: Mapping[str, str],
    data: Mapping[str, str],
) -> ServingPlace:
    """Return the typed cluster, or the first with a GPU that fits the version, and the typed or preferred engine."""
    if typed.get("cluster"):
        candidates = [one for one in known if str(one.id) == typed["cluster"]]
    else:
        candidates = _list_usable(known)
    if version is None:
        candidates = candidates[:1]
    first = None
    for cluster in candidates:
        place = _build(version, cluster, typed, data)
        if place.has_fit:
            return place
        first = first or place
    return first or _build(version, None, typed, data)


def _list_usable(known: Sequence[ClusterInfo]) -> list[ClusterInfo]:
    """Return the clusters that answer. All of them if none is known to."""
    return [one for one in known if one.is_reachable] or list(known)


def _build(
    version: ModelVersion | None,
    cluster: ClusterInfo | None,
    typed: Mapping[str, str],
    data: Mapping[str, str],
) -> ServingPlace:
    engine = typed.get("engine") or _choose_engine(cluster, version, data)
    # Before a version is chosen no share is: reading those of a large cluster takes long.
    if cluster is None or (version is None and not typed.get("share")):
        return ServingPlace(cluster, engine)
    listed = capacity.list_shares(cluster_id=cluster.id)
    if engine not in neuron_rules.ENGINES:
        listed = offers.drop_neuron(listed)
    shares = catalogue.filter_shares(listed, request_body.placement_of(data))
    advice = gpu_choice.advice_of(
        version=version, cluster=cluster, shares=shares, data={**data, "engine": engine}
    )
    return ServingPlace(cluster, engine, listed, shares, advice)


def _choose_engine(
    cluster: ClusterInfo | None, version: ModelVersion | None, data: Mapping[str, str]
) -> str:
    """Return the preferred engine that loads the version and that the cluster can run, else the most preferred one."""
    if cluster is None:
        return data.get("engine", "")
    loads = _list_engines_for(version)
    preferred = [engine for engine in loads if engine in ONNX_ENGINES] or loads
    reason = partial(cluster_support.engine_reason, capabilities=cluster.capabilities)
    return next((engine for engine in preferred if not reason(engine)), preferred[0])


def _list_engines_for(version: ModelVersion | None) -> Sequence[str]:
    """List the engines that load the version. Beside a model of Triton, weights of a hub may be requested."""
    if version is None:
        return (*ONNX_ENGINES, *LLM_ENGINES)
    loads = loading.engines_for(version.source_uri, version.format, version.signature)
    return (*ONNX_ENGINES, *LLM_ENGINES) if loads == ONNX_ENGINES else loads
