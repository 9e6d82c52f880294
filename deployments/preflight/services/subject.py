"""The revision that is checked, before or after its rows exist."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from deployments import rejections
from deployments.manifests.domain.metadata import ManifestContext
from deployments.manifests.selectors import rendered, rendering
from deployments.manifests.selectors.rendered import RenderedRevision
from deployments.models import ModelVersion, Revision
from deployments.preflight.services.cost import ReplacedDeployment
from deployments.spec.domain.serving_spec import ServingSpec
from deployments.states import Environment
from fleet.clusters.selectors.clusters import ClusterInfo
from portal.accounts.models import Team


@dataclass(frozen=True, slots=True)
class Subject:
    team: Team
    cluster: ClusterInfo
    context: ManifestContext
    rendered: RenderedRevision
    # The versions of the stable revision; None for a new deployment.
    stable: ModelVersion | None = None
    stable_additional: Sequence[ModelVersion] = ()
    environment: str = Environment.PRODUCTION
    # None for a new deployment.
    replaces: ReplacedDeployment | None = None
    # Of the rollout that the revision is the candidate of.
    baseline: ServingSpec | None = None

    @property
    def version(self) -> ModelVersion:
        return self.rendered.version

    @property
    def spec(self) -> ServingSpec:
        return self.rendered.spec


def subject_of(
    version: ModelVersion,
    cluster: ClusterInfo,
    spec: ServingSpec,
    *,
    name: str,
    deployment_id: int,
    number: int,
    stable: Revision | None = None,
    revision: RenderedRevision | None = None,
) -> Subject:
    """Render the revision in its context. Raises Invalid where it cannot be rendered."""
    team = version.model.team
    context = rendering.context_for(
        team=team.slug,
        name=name,
        deployment_id=deployment_id,
        cluster=cluster,
        policy=cluster.serving,
        capabilities=cluster.capabilities,
    )
    with rejections.as_invalid():
        revision = revision or rendered.render(context, number=number, version=version, spec=spec)
    subject = Subject(team, cluster, context, revision)
    if stable is None:
        return subject
    stable_additional = rendering.additional_versions(stable.version, rendering.spec_of(stable))
    return replace(subject, stable=stable.version, stable_additional=stable_additional)
