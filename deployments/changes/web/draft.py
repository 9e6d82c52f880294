"""A request while it is being written: the form with what it may choose from, for one request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from deployments.changes.web import gpu_choice, new_deployment_cards, request_body
from deployments.changes.web.form import DeployForm
from deployments.models import ModelVersion
from deployments.preflight.domain.checks import DeployDraft
from deployments.preflight.selectors import addresses
from deployments.registry.domain import external_weights
from deployments.registry.selectors import versions as registry_versions
from deployments.sizing.domain.ranking import Advice
from deployments.spec.domain import cluster_support, kubernetes_names
from deployments.spec.domain.engines import LLM_ENGINES, ONNX_ENGINES
from fleet.capacity.selectors import capacity
from fleet.capacity.selectors.capacity import GpuShare
from fleet.clusters.domain.capabilities import Capabilities
from fleet.clusters.selectors import clusters
from fleet.clusters.selectors.clusters import ClusterInfo
from portal.accounts.models import Team, User


@dataclass(slots=True)
class Draft:
    """Built anew for every request."""

    user: User
    team: Team
    data: dict[str, str]
    versions: list[ModelVersion]
    clusters: list[ClusterInfo]
    shares: list[GpuShare]
    form: DeployForm
    taken_names: frozenset[str] = frozenset()
    advice: Advice | None = None
    asked: DeployDraft | None = None

    @property
    def version(self) -> ModelVersion | None:
        return _chosen(self.versions, self.data)

    @property
    def cluster(self) -> ClusterInfo | None:
        return _found(self.clusters, self.data)

    @property
    def share(self) -> GpuShare | None:
        wanted = self.data.get("share", "")
        return next((s for s in self.shares if gpu_choice.value_of(s) == wanted), None)


def build(
    user: User, team: Team, typed: dict[str, str], *, is_choosing_version: bool = False
) -> Draft:
    """Fills in what was not chosen yet; what was typed stays, right or wrong. While the version is
    being chosen the engine follows it.
    """
    versions = list(registry_versions.list_ready_versions(actor=user, team_slug=team.slug))
    known = clusters.list_clusters()
    data = {**request_body.DEFAULTS, **typed}
    if known and not data.get("cluster"):
        data["cluster"] = str(next((c.id for c in known if c.is_reachable), known[0].id))
    cluster = _found(known, data)
    loads = _engines_for(_chosen(versions, data))
    follows = not typed.get("engine") or (is_choosing_version and data["engine"] not in loads)
    if cluster is not None and follows:
        data["engine"] = _usual_engine(cluster, loads)
    listed = [] if cluster is None else capacity.list_shares(cluster_id=cluster.id)
    shares = capacity.for_capacity(listed, data["placement_capacity"])
    taken: frozenset[str] = frozenset()
    if cluster is not None:
        taken = addresses.taken_names(cluster_id=cluster.id, namespace=team.slug)
    choices = new_deployment_cards.choices_of(
        versions, known, shares, namespace=team.slug, taken_names=taken
    )
    form = DeployForm(data, choices=choices)
    draft = Draft(user, team, data, versions, known, shares, form, taken)
    _complete(draft)
    draft.asked = new_deployment_cards.draft_of(form)
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
    if not gpu_choice.may_stay(chosen, draft.advice, draft.shares):
        data["share"] = gpu_choice.default_share(draft.advice, draft.shares)


def _found(known: list[ClusterInfo], data: Mapping[str, str]) -> ClusterInfo | None:
    return next((c for c in known if str(c.id) == data.get("cluster", "")), None)


def _chosen(versions: Sequence[ModelVersion], data: Mapping[str, str]) -> ModelVersion | None:
    return next((v for v in versions if str(v.pk) == data.get("version", "")), None)


def _engines_for(version: ModelVersion | None) -> Sequence[str]:
    """What may be asked for: of a reference, only what loads it; the usual ones first."""
    if version is None or not version.source_uri:
        return (*ONNX_ENGINES, *LLM_ENGINES)
    return external_weights.parse(version.source_uri).engines


def _usual_engine(cluster: ClusterInfo, loads: Sequence[str]) -> str:
    """The first that serves the version and that the cluster can run."""
    usual = [engine for engine in loads if engine in ONNX_ENGINES] or loads
    offered = Capabilities.from_json(cluster.capabilities)
    can = [engine for engine in usual if not cluster_support.engine_reason(engine, offered)]
    return (can or usual)[0]
