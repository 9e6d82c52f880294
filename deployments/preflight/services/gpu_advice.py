"""What to run a version on: facts of the version, the cluster and the team, put to the adviser."""

from __future__ import annotations

from dataclasses import dataclass, replace

from deployments.domain import sizing_offers, stated_models
from deployments.domain.problems import Rejected
from deployments.domain.sizing_choices import Advice, Demand, Limits, Offer, ShareKind
from deployments.domain.sizing_choices import advise as ranked
from deployments.domain.sizing_needs import (
    LanguageModel,
    Need,
    need_of_language_model,
)
from deployments.domain.sizing_offers import Listed
from deployments.domain.specs import Packed
from deployments.models import ModelVersion
from deployments.selectors import measurements, plans, quotas
from deployments.services import costing, preflight
from fleet.domain.capabilities import Capabilities
from fleet.selectors import capacity, clusters, prices
from fleet.selectors.capacity import GpuShare
from fleet.selectors.clusters import ClusterInfo
from portal.accounts import policy
from portal.accounts.models import Team
from portal.accounts.policy import Action, Actor
from portal.core import clock
from portal.core.errors import Invalid
from portal.core.money import HOURS_PER_MONTH

_KINDS = {
    "whole": ShareKind.WHOLE,
    "mig": ShareKind.MIG,
    "mps": ShareKind.MPS,
    "shared": ShareKind.SHARED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What a person expects. `language` is set for a language model; the file then says nothing."""

    requests_per_second: int | None = None
    instances: int = 1
    most_replicas: int = 1
    language: LanguageModel | None = None
    # Further models in the same processes.
    packed: tuple[Packed, ...] = ()


def advise(*, actor: Actor, version_id: int, cluster_id: int, load: Load) -> Advice:
    """Raises NotFound for what the actor cannot see, Invalid when nothing says what is needed."""
    version = preflight.visible_version(actor, version_id)
    policy.require(actor, Action.REQUEST_CHANGE, version)
    cluster = clusters.get_cluster(cluster_id)
    try:
        found = advise_version(version=version, cluster=cluster, load=load)
    except Rejected as error:
        raise preflight.as_invalid(error) from error
    if found is None:
        words = f"The file of {version.label} was not read, so what it needs is not known."
        if version.source_uri:
            words = f"How large {version.label} is was not stated, so what it needs is not known."
        raise Invalid(words, fields={"language_model": "State the model's parameters."})
    return found


def advise_version(
    *,
    version: ModelVersion,
    cluster: ClusterInfo,
    load: Load,
    shares: list[GpuShare] | None = None,
) -> Advice | None:
    """None when neither the file nor the load says how much memory is needed. Raises Rejected for
    packed versions that the team has not.
    """
    need = need_of(version, load)
    if need is None:
        return None
    if shares is None:
        shares = capacity.list_shares(cluster_id=cluster.id)
    here = [_offer(share) for share in shares]
    return ranked(
        need=need,
        offers=[*here, *_not_here(need, here, cluster)],
        demand=_demand(version, load),
        limits=_limits(version.team),
    )


def need_of(version: ModelVersion, load: Load) -> Need | None:
    language = load.language or _stated_language(version)
    if language is not None:
        return need_of_language_model(language)
    if version.source_uri:
        return None
    packed = plans.versions_named(version, load.packed)
    tunings = zip(packed, load.packed, strict=True)
    others = [(one, tuning.instances_per_gpu) for one, tuning in tunings]
    return measurements.need_of(version, instances=load.instances, packed=others)


def _stated_language(version: ModelVersion) -> LanguageModel | None:
    """Of a version by reference; no more context is counted than the model has."""
    stated = stated_models.of_version(version.source_uri, version.metadata)
    if not stated.parameters_millions:
        return None
    usual = LanguageModel(
        parameters_millions=stated.parameters_millions, precision=stated.precision
    )
    context = min(usual.context_tokens, stated.context_length or usual.context_tokens)
    return replace(usual, context_tokens=context)


def _demand(version: ModelVersion, load: Load) -> Demand:
    busy = measurements.busy_us_of(version) if load.requests_per_second else None
    return Demand(
        requests_per_second=load.requests_per_second,
        busy_us=busy,
        most_replicas=load.most_replicas,
    )


def _limits(team: Team) -> Limits:
    budget, running = team.monthly_budget_amount, costing.running_per_hour(team)
    left = None
    if budget and running is not None:
        left = budget - running * HOURS_PER_MONTH
    return Limits(
        quota_left_gpus=team.quota_gpus - quotas.committed_gpus(team),
        budget_left_amount=left,
    )


def _not_here(need: Need, here: list[Offer], cluster: ClusterInfo) -> list[Offer]:
    listed = [
        Listed(
            instance_type=price.instance_type,
            gpu_name=price.gpu_name,
            gpus=price.gpu_count,
            memory_mib=price.gpu_memory_mib,
            is_mig_capable=price.is_mig_capable,
            usd_per_hour_amount=price.usd_per_hour_amount,
        )
        for price in prices.list_prices(on=clock.now().date())
        if price.gpu_count and price.capacity_type == "on-demand" and price.region == cluster.region
    ]
    can_grow = Capabilities.from_json(cluster.capabilities).feature("karpenter").is_there is True
    beyond = sizing_offers.elsewhere(need, listed, here, cluster=cluster.name, can_grow=can_grow)
    return [*sizing_offers.unsliced(need, listed, here), *beyond]


def _offer(share: GpuShare) -> Offer:
    return Offer(
        instance_type=share.instance_type,
        gpu_name=share.gpu_name.removeprefix("NVIDIA-").removeprefix("Tesla-"),
        gpu_resource=share.gpu_resource,
        gpus=share.gpus,
        memory_mib=share.vram_mib // share.gpus,
        kind=_KINDS[share.sharing],
        usd_per_hour_amount=share.usd_per_hour_amount,
        free_replicas=share.free_now,
        is_started=not share.nodes,
    )
