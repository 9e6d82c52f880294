"""Rank GPU choices for a version from facts of the version, the cluster and the team."""

from __future__ import annotations

from dataclasses import dataclass

from deployments import rejections
from deployments.manifests.selectors import rendering
from deployments.models import ModelVersion
from deployments.preflight.selectors import quotas
from deployments.preflight.services import cost
from deployments.registry.selectors import versions
from deployments.sizing.domain import alternatives, declared_size, language_models
from deployments.sizing.domain.alternatives import ListedInstanceType
from deployments.sizing.domain.demand import Demand, TeamLimits
from deployments.sizing.domain.memory import LanguageModel, Need, need_of_language_model
from deployments.sizing.domain.ranking import Advice, Offer, RejectionReason, ShareKind
from deployments.sizing.domain.ranking import advise as ranked
from deployments.sizing.selectors import measurements
from deployments.spec.domain.placement import catalogue
from deployments.spec.domain.serving_spec import AdditionalModel, Placement
from fleet.capacity.selectors import capacity
from fleet.capacity.selectors.capacity import GpuShare
from fleet.clusters.selectors import clusters
from fleet.clusters.selectors.clusters import ClusterInfo
from fleet.gpus.domain import neuron, offers
from fleet.gpus.domain.money import HOURS_PER_MONTH
from fleet.gpus.selectors import prices
from portal.accounts import policy
from portal.accounts.models import Team
from portal.accounts.policy import Action, Actor
from portal.core import clock
from portal.core.errors import Invalid

_KINDS = {
    "whole": ShareKind.WHOLE,
    "mig": ShareKind.MIG,
    "mps": ShareKind.MPS,
    "shared": ShareKind.SHARED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The expected load. `language` replaces what the file says, for a language model."""

    requests_per_second: int | None = None
    instances: int = 1
    max_replicas: int = 1
    language: LanguageModel | None = None
    # Additional models in the same processes.
    additional_models: tuple[AdditionalModel, ...] = ()


def advise(*, actor: Actor, version_id: int, cluster_id: int, load: Load) -> Advice:
    """Rank the cluster's GPU shares for a version. Raises NotFound for what the actor cannot see, Invalid if
    the required memory is unknown.
    """
    version = versions.get_version(actor=actor, version_id=version_id)
    policy.require(actor, Action.REQUEST_CHANGE, version)
    cluster = clusters.get_cluster(cluster_id)
    with rejections.as_invalid():
        advice = advise_version(version=version, cluster=cluster, load=load)
    if advice is None:
        message = f"The file of {version.label} was not read, so its GPU memory is unknown."
        if version.source_uri:
            message = f"The size of {version.label} is not set, so its GPU memory is unknown."
        raise Invalid(
            message, fields={"language_model": ("Set the number of parameters in its metadata.")}
        )
    return advice


def advise_version(
    *,
    version: ModelVersion,
    cluster: ClusterInfo,
    load: Load,
    shares: list[GpuShare] | None = None,
) -> Advice | None:
    """Rank the cluster's GPU shares for a version. None if the required memory is unknown. Raises Rejected for
    additional models that the team does not have.
    """
    need = estimate_need(version, load)
    if need is None:
        return None
    if shares is None:
        shares = _shares_of(cluster)
    is_language = load.language is not None or _language_model_of(version) is not None
    if not is_language:
        shares = offers.drop_neuron(shares)
    local_offers = [_offer_of(share, cluster) for share in shares]
    return ranked(
        need=need,
        offers=[
            *local_offers,
            *_unavailable_offers(need, local_offers, cluster, is_language=is_language),
        ],
        demand=_demand(version, load),
        limits=_limits(version.team),
    )


def _shares_of(cluster: ClusterInfo) -> list[GpuShare]:
    """List the GPU shares of device plugins, then those of a DRA driver. The first include what a node would
    bring that is not there yet.
    """
    listed = capacity.list_shares(cluster_id=cluster.id)
    of_plugins = catalogue.filter_shares(listed, Placement())
    by_claim = catalogue.filter_shares(
        [share for share in listed if share.is_claimed], Placement(device_claims=True)
    )
    return [*of_plugins, *by_claim]


def estimate_need(version: ModelVersion, load: Load) -> Need | None:
    language = load.language or _language_model_of(version)
    if language is not None:
        return need_of_language_model(language)
    if version.source_uri:
        return None
    additional = rendering.versions_named(version, load.additional_models)
    tunings = zip(additional, load.additional_models, strict=True)
    others = [(added, tuning.instances_per_gpu) for added, tuning in tunings]
    return measurements.estimate_need(version, instances=load.instances, additional=others)


def _language_model_of(version: ModelVersion) -> LanguageModel | None:
    """Return the size of external weights as declared, or that of uploaded ones as read."""
    size = declared_size.from_version(version.source_uri, version.metadata, version.signature)
    return language_models.model_of(size) if size.parameters_millions else None


def _demand(version: ModelVersion, load: Load) -> Demand:
    busy = measurements.gpu_us_per_inference(version) if load.requests_per_second else None
    return Demand(
        requests_per_second=load.requests_per_second,
        busy_us=busy,
        max_replicas=load.max_replicas,
    )


def _limits(team: Team) -> TeamLimits:
    budget, running = team.monthly_budget_amount, quotas.list_running(team)
    per_hour = cost.sum_per_hour(running, cost.SharesByCluster())
    left = None
    if budget and per_hour is not None:
        left = budget - per_hour * HOURS_PER_MONTH
    return TeamLimits(
        quota_left_gpus=team.quota_gpus - quotas.committed_gpus(team, running),
        budget_left_amount=left,
        is_budget_binding=team.is_budget_binding,
    )


def _unavailable_offers(
    need: Need, local_offers: list[Offer], cluster: ClusterInfo, *, is_language: bool
) -> list[Offer]:
    listed = [
        ListedInstanceType(
            instance_type=price.instance_type,
            gpu_name=price.gpu_name,
            gpus=price.gpu_count,
            memory_mib=price.gpu_memory_mib,
            is_mig_capable=price.is_mig_capable,
            usd_per_hour_amount=price.usd_per_hour_amount,
        )
        for price in prices.list_prices(on=clock.now().date())
        if price.gpu_count
        and price.capacity_type == "on-demand"
        and price.region == cluster.region
        and (is_language or not neuron.is_product(price.gpu_name))
    ]
    can_grow = cluster.capabilities.feature("karpenter").is_there is True
    elsewhere = alternatives.offers_elsewhere(
        need, listed, local_offers, cluster=cluster.name, can_grow=can_grow
    )
    return [*alternatives.offers_partitioned(need, listed, local_offers), *elsewhere]


def _offer_of(share: GpuShare, cluster: ClusterInfo) -> Offer:
    refusal = _why_no_claims(share, cluster)
    is_known = not share.is_claimed or cluster.devices_read_at is not None
    return Offer(
        instance_type=share.instance_type,
        gpu_name=share.gpu_name.removeprefix("NVIDIA-")
        .removeprefix("NVIDIA ")
        .removeprefix("Tesla-"),
        gpu_resource=share.gpu_resource,
        gpus=share.gpus,
        memory_mib=share.vram_mib // share.gpus,
        kind=_KINDS[share.sharing],
        usd_per_hour_amount=share.usd_per_hour_amount,
        free_replicas=share.free_now if is_known else None,
        is_started=share.is_startable and not share.nodes,
        missing=RejectionReason.NOT_OFFERED if refusal else None,
        missing_message=refusal,
        is_claimed=share.is_claimed,
    )


def _why_no_claims(share: GpuShare, cluster: ClusterInfo) -> str:
    """Return why the share's devices cannot be claimed. Empty where they can, or where that is not known."""
    if not share.is_claimed:
        return ""
    options = ("device-claims", "mig-claims") if share.sharing == "mig" else ("device-claims",)
    refused = (cluster.capabilities.offers(option) for option in options)
    return next((offer.why for offer in refused if offer.ok is False), "")
