"""A request while it is being written: the form with what it may choose from, for one request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from deployments.domain import references, spec_offers
from deployments.domain.preflight import DeployDraft
from deployments.domain.sizing_choices import Advice
from deployments.domain.spec_engines import LLM_ENGINES, ONNX_ENGINES
from deployments.models import ModelVersion
from deployments.selectors import registry
from deployments.web import deploy_page, deploy_shares, request_body
from deployments.web.deploy_form import DeployForm
from fleet.domain.capabilities import Capabilities
from fleet.selectors import capacity, clusters
from fleet.selectors.capacity import GpuShare
from fleet.selectors.clusters import ClusterInfo
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
        return next((s for s in self.shares if deploy_shares.value_of(s) == wanted), None)


def build(
    user: User, team: Team, typed: dict[str, str], *, is_choosing_version: bool = False
) -> Draft:
    """Fills in what was not chosen yet; what was typed stays, right or wrong. While the version is
    being chosen the engine follows it.
    """
    versions = list(registry.list_ready_versions(actor=user, team_slug=team.slug))
    known = clusters.list_clusters()
    data = {**request_body.DEFAULTS, **typed}
    if known and not data.get("cluster"):
        data["cluster"] = str(next((c.id for c in known if c.is_reachable), known[0].id))
    cluster = _found(known, data)
    loads = _engines_for(_chosen(versions, data))
    follows = not typed.get("engine") or (is_choosing_version and data["engine"] not in loads)
    if cluster is not None and follows:
        data["engine"] = _usual_engine(cluster, loads)
    shares = [] if cluster is None else capacity.list_shares(cluster_id=cluster.id)
    form = DeployForm(data, choices=deploy_page.choices_of(versions, known, shares))
    draft = Draft(user, team, data, versions, known, shares, form)
    _complete(draft)
    draft.asked = deploy_page.draft_of(form)
    return draft


def _complete(draft: Draft) -> None:
    data = draft.data
    if draft.version is not None and not data.get("name"):
        data["name"] = draft.version.model.name[:30]
    draft.advice = deploy_shares.advice_of(
        version=draft.version, cluster=draft.cluster, shares=draft.shares, data=data
    )
    chosen = data.get("share", "").strip("|")
    if draft.version is None or (chosen and draft.share is None):
        return
    if not deploy_shares.may_stay(chosen, draft.advice, draft.shares):
        data["share"] = deploy_shares.default_share(draft.advice, draft.shares)


def _found(known: list[ClusterInfo], data: Mapping[str, str]) -> ClusterInfo | None:
    return next((c for c in known if str(c.id) == data.get("cluster", "")), None)


def _chosen(versions: Sequence[ModelVersion], data: Mapping[str, str]) -> ModelVersion | None:
    return next((v for v in versions if str(v.pk) == data.get("version", "")), None)


def _engines_for(version: ModelVersion | None) -> Sequence[str]:
    """What may be asked for: of a reference, only what loads it; the usual ones first."""
    if version is None or not version.source_uri:
        return (*ONNX_ENGINES, *LLM_ENGINES)
    return references.parse(version.source_uri).engines


def _usual_engine(cluster: ClusterInfo, loads: Sequence[str]) -> str:
    """The first that serves the version and that the cluster can run."""
    usual = [engine for engine in loads if engine in ONNX_ENGINES] or loads
    offered = Capabilities.from_json(cluster.capabilities)
    can = [engine for engine in usual if not spec_offers.engine_reason(engine, offered)]
    return (can or usual)[0]
