"""A deployment request while it is written: the form and its choices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from deployments.changes.web import (
    gpu_choice,
    new_deployment_cards,
    request_body,
    version_choice,
)
from deployments.changes.web.form import DeployForm
from deployments.changes.web.gpu_choice import value_of
from deployments.models import ModelVersion
from deployments.preflight.domain.checks import DeployDraft
from deployments.preflight.selectors import addresses
from deployments.registry.domain import loading
from deployments.sizing.domain.ranking import Advice
from deployments.spec.domain import cluster_support, kubernetes_names
from deployments.spec.domain.accelerators import neuron_rules
from deployments.spec.domain.engines import LLM_ENGINES, ONNX_ENGINES
from deployments.spec.domain.placement import catalogue
from deployments.spec.domain.placement.catalogue import Placement
from fleet.capacity.selectors import capacity
from fleet.capacity.selectors.capacity import GpuShare
from fleet.clusters.selectors import clusters
from fleet.clusters.selectors import instance_types as cluster_instance_types
from fleet.clusters.selectors.clusters import ClusterInfo
from fleet.gpus.domain import instance_types, offers
from portal.accounts.models import Team, User


@dataclass(slots=True)
class Draft:
    """The form with its choices, for one HTTP request."""

    user: User
    team: Team
    data: dict[str, str]
    version: ModelVersion | None
    clusters: list[ClusterInfo]
    shares: list[GpuShare]
    form: DeployForm
    taken_names: frozenset[str] = frozenset()
    # Shares that the cluster offers, but not to pods of this placement.
    is_offered_otherwise: bool = False
    # GPU products of nodes without an instance type, with these nodes.
    unlabelled: Mapping[str, list[str]] = field(default_factory=dict)
    advice: Advice | None = None
    requested: DeployDraft | None = None

    @property
    def cluster(self) -> ClusterInfo | None:
        return _cluster_of(self.clusters, self.data)

    @property
    def placement(self) -> Placement:
        return request_body.placement_of(self.data)

    @property
    def shares_reason(self) -> str:
        """The reason why there are no GPU shares."""
        cluster = self.cluster
        if cluster is None:
            return "Choose a cluster first. A platform admin connects clusters under Admin."
        if cluster.is_reachable is False:
            return f"{cluster.name} does not answer: {cluster.last_error}"
        if self.unlabelled_note:
            return self.unlabelled_note
        if not self.is_offered_otherwise:
            return f"{cluster.name} has no known GPU nodes."
        return catalogue.explain_no_share(self.placement, cluster.name)

    @property
    def unlabelled_note(self) -> str:
        """A note on GPUs of the cluster that cannot be requested, and why. Empty if all can."""
        if not self.unlabelled:
            return ""
        products = ", ".join(sorted(self.unlabelled))
        nodes = [name for names in self.unlabelled.values() for name in names]
        more = f" and {len(nodes) - 1} more" if len(nodes) > 1 else ""
        return (
            f"{products} of {nodes[0]}{more} cannot be requested: no label {instance_types.LABEL}. "
            "A platform admin can set one."
        )

    @property
    def share(self) -> GpuShare | None:
        chosen = self.data.get("share", "")
        return next((share for share in self.shares if value_of(share) == chosen), None)


def build(
    user: User, team: Team, typed: dict[str, str], *, is_choosing_version: bool = False
) -> Draft:
    """Fill in defaults for what was not chosen yet; typed values stay, right or wrong. While the
    version is being chosen the engine follows it.
    """
    version = version_choice.find(user=user, team=team, version_id=typed.get("version", ""))
    known = clusters.list_clusters()
    data = {**request_body.DEFAULTS, **typed}
    if known and not data.get("cluster"):
        data["cluster"] = str(next((c.id for c in known if c.is_reachable), known[0].id))
    cluster = _cluster_of(known, data)
    loads = _engines_for(version)
    follows = not typed.get("engine") or (is_choosing_version and data["engine"] not in loads)
    if cluster is not None and follows:
        data["engine"] = _default_engine(cluster, loads)
    # Before a version is chosen no share is: reading those of a large cluster takes long.
    has_shares = cluster is not None and (version is not None or bool(data.get("share")))
    listed = capacity.list_shares(cluster_id=cluster.id) if cluster and has_shares else []
    if data["engine"] not in neuron_rules.ENGINES:
        listed = offers.drop_neuron(listed)
    shares = catalogue.filter_shares(listed, request_body.placement_of(data))
    taken: frozenset[str] = frozenset()
    if cluster is not None:
        taken = addresses.taken_names(cluster_id=cluster.id, namespace=team.slug)
    additional = [data[name] for name in request_body.ADDITIONAL_MODELS if data.get(name)]
    choices = new_deployment_cards.choices_of(
        version,
        known,
        shares,
        addable=version_choice.known_labels(
            user=user, team=team, labels=additional, beside=version
        ),
        namespace=team.slug,
        taken_names=taken,
    )
    form = DeployForm(data, choices=choices)
    draft = Draft(user, team, data, version, known, shares, form, taken)
    draft.is_offered_otherwise = bool(listed) and not shares
    if cluster is not None and has_shares:
        draft.unlabelled = cluster_instance_types.list_unlabelled(cluster_id=cluster.id)
    _complete(draft)
    draft.requested = new_deployment_cards.draft_of(form)
    return draft


def _complete(draft: Draft) -> None:
    data = draft.data
    if draft.version is not None and not data.get("name"):
        data["name"] = kubernetes_names.suggest(
            draft.version.model.name, namespace=draft.team.slug, taken=draft.taken_names
        )
    draft.advice = gpu_choice.advice_of(
        version=draft.version, cluster=draft.cluster, shares=draft.shares, data=data
    )
    chosen = data.get("share", "").strip("|")
    if draft.version is None or (chosen and draft.share is None):
        return
    if not gpu_choice.is_still_possible(chosen, draft.advice, draft.shares):
        data["share"] = gpu_choice.default_share(draft.advice, draft.shares)


def _cluster_of(known: list[ClusterInfo], data: Mapping[str, str]) -> ClusterInfo | None:
    return next((cluster for cluster in known if str(cluster.id) == data.get("cluster", "")), None)


def _engines_for(version: ModelVersion | None) -> Sequence[str]:
    """Return the engines that load the version. Beside a model of Triton, weights of a hub may be requested."""
    if version is None:
        return (*ONNX_ENGINES, *LLM_ENGINES)
    loads = loading.engines_for(version.source_uri, version.format, version.signature)
    return (*ONNX_ENGINES, *LLM_ENGINES) if loads == ONNX_ENGINES else loads


def _default_engine(cluster: ClusterInfo, loads: Sequence[str]) -> str:
    """Return the preferred engine that loads the version and that the cluster can run, else the most preferred one."""
    preferred = [engine for engine in loads if engine in ONNX_ENGINES] or loads
    reason = partial(cluster_support.engine_reason, capabilities=cluster.capabilities)
    return next((engine for engine in preferred if not reason(engine)), preferred[0])
