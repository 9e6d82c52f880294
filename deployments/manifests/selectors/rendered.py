"""Revisions and deployments rendered once: parse the spec, read the versions of multi-model serving
and build the manifests in one go, then hand the object on instead of rendering again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from deployments.access.domain import catalogue
from deployments.access.domain.kind import AccessKind
from deployments.manifests.domain import http_route, metadata, route_paths
from deployments.manifests.domain import revision as revision_manifests
from deployments.manifests.domain.access import (
    caller_keys,
    istio_access,
    team_address,
)
from deployments.manifests.domain.access.limit_rules import LimitRules
from deployments.manifests.domain.http_route import RouteBackend
from deployments.manifests.domain.metadata import (
    Manifest,
    ManifestContext,
    ServedRevision,
    to_yaml,
)
from deployments.manifests.domain.model_files.bucket_files import ServingFiles
from deployments.manifests.selectors import caller_access, rendering, team_members
from deployments.models import Deployment, ModelVersion, Revision
from deployments.spec.domain import replicas
from deployments.spec.domain.digests import digest_of
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.clusters.domain.capability_descriptions import PIPELINE_KEY_HEADER


@dataclass(frozen=True, slots=True)
class RenderedRevision:
    """A revision with its manifests. `additional` are the versions of multi-model serving, in the order of the
    spec; `files` are the objects that must be in the bucket; `manifests` are all objects but the Secret.
    """

    context: ManifestContext
    version: ModelVersion
    spec: ServingSpec
    additional: Sequence[ModelVersion]
    files: ServingFiles
    served: ServedRevision
    manifests: Sequence[Manifest]

    @property
    def workload(self) -> Manifest:
        return next(manifest for manifest in self.manifests if metadata.is_workload(manifest))

    @property
    def workload_digest(self) -> str:
        """The digest annotation of the workload: it covers all objects of the revision."""
        return str(self.workload["metadata"]["annotations"][metadata.DIGEST_ANNOTATION])

    @property
    def evidence_digest(self) -> str:
        """The digest of what a form shows before a change request exists: the manifests and the version's
        identity.
        """
        return digest_of({"manifests": self.manifests, "version": identity_of(self.version)})

    def to_yaml(self) -> str:
        return to_yaml(self.manifests)


def identity_of(version: ModelVersion) -> list[str]:
    """Return the identity that an approval binds to: the external address of the weights, or the exact uploaded
    bytes.
    """
    if version.source_uri:
        return [version.source_uri]
    return [version.bucket, version.upload_prefix, version.sha256]


def render(
    context: ManifestContext,
    *,
    number: int,
    version: ModelVersion,
    spec: ServingSpec,
    is_baseline: bool = False,
) -> RenderedRevision:
    """Render a revision, with or without a row. Raises Rejected for a version of multi-model serving that the
    team does not have.
    """
    additional = rendering.additional_versions(version, spec)
    files = rendering.files_for(version=version, spec=spec, additional=additional)
    served = rendering.served_revision_for(
        number=number, version=version, spec=spec, additional=additional, files=files
    )
    served = replace(served, is_baseline=is_baseline)
    manifests = [
        *revision_manifests.build_shared(context, served),
        *revision_manifests.build_own(context, served),
    ]
    return RenderedRevision(context, version, spec, additional, files, served, manifests)


def render_revision(
    revision: Revision, *, scale: Mapping[str, Any] | None = None
) -> RenderedRevision:
    """Render a revision with the replicas of `scale`, else of its deployment."""
    return render(
        rendering.context_of(revision.deployment),
        number=revision.number,
        version=revision.version,
        spec=rendering.spec_of(revision, scale=scale),
        is_baseline=revision.baseline_of_id is not None,
    )


def is_of(
    rendered: RenderedRevision, revision: Revision, *, scale: Mapping[str, Any] | None = None
) -> bool:
    """Whether it is this revision with these replicas, for the deployment and its cluster as they are now."""
    served = rendered.served
    return (
        (served.number, served.is_baseline)
        == (revision.number, revision.baseline_of_id is not None)
        and rendered.version.pk == revision.version_id
        and rendered.spec == rendering.spec_of(revision, scale=scale)
        and rendered.context == rendering.context_of(revision.deployment)
    )


class RenderedDeployment:
    """The manifests of a deployment's rows, each rendered when first needed and never again. Make
    one per reconcile pass or page; a changed row needs a new one.
    """

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        rows = (
            deployment.stable_revision,
            deployment.candidate_revision,
            deployment.baseline_revision,
        )
        self.revisions = [revision for revision in rows if revision is not None]
        for revision in self.revisions:
            # The same row, already loaded with its team and cluster.
            revision.deployment = deployment
        self._specs: dict[int, ServingSpec] = {}
        self._rendered: dict[int, RenderedRevision] = {}

    @cached_property
    def context(self) -> ManifestContext:
        return rendering.context_of(self.deployment)

    @cached_property
    def backends(self) -> Sequence[RouteBackend]:
        return rendering.backends_of(self.deployment, self.spec_of)

    @cached_property
    def route(self) -> Manifest:
        return self.route_with(self.keys)

    def route_with(self, keys: str) -> Manifest:
        """Return the route with an annotation about its keys, written while its policies are not as desired."""
        return caller_keys.annotate_route(self._plain_route, keys)

    @cached_property
    def _plain_route(self) -> Manifest:
        route = http_route.http_route(self.context, self.backends)
        if self.access.removed_headers:
            return caller_keys.without_headers(route, self.access.removed_headers)
        is_called_with_key = (
            not self.keys
            and self.context.has_pipeline_keys
            and caller_access.has_pipeline_key(self.deployment)
        )
        # Its gateway checks no key, so it would leave the one of a pipeline to the model.
        return (
            caller_keys.without_headers(route, [PIPELINE_KEY_HEADER])
            if is_called_with_key
            else route
        )

    @cached_property
    def access(self) -> AccessKind:
        """The stable revision decides: a candidate with another access changes it when it is promoted."""
        stable = self.deployment.stable_revision
        return catalogue.UNCHECKED if stable is None else self.spec_of(stable).network.access_kind

    @cached_property
    def token_issuer(self) -> str:
        """The issuer whose tokens callers send. Empty where the address is open, or callers have keys."""
        stable = self.deployment.stable_revision
        return "" if stable is None else self.spec_of(stable).network.token_issuer

    @cached_property
    def keys(self) -> str:
        """The state of the callers' keys, as the route is annotated with it; empty where it is open."""
        return self.access.route_state(self.deployment.caller_keys_generation, self.token_issuer)

    @cached_property
    def caller_policies(self) -> Sequence[Manifest]:
        """The policies beside the route that say who may call it, and how often. Empty where the address is
        open, or where the policies lie beside the Gateway.
        """
        if not self._is_closed or self.context.verifies_tokens:
            return ()
        limits = self.limits.rules
        callers = caller_access.callers_of(self.deployment, self.token_issuer)
        policy = caller_keys.policy(self.context, self.access.security(callers))
        return (policy, caller_keys.limits(self.context, limits)) if limits else (policy,)

    @cached_property
    def limits(self) -> LimitRules:
        return caller_access.limits(self.deployment, self.token_issuer)

    @cached_property
    def gateway_policies(self) -> Sequence[Manifest]:
        """The policies in the Gateway's namespace that say who may call the route, for a Gateway that verifies
        signed keys. Empty otherwise, and where the address is open.
        """
        if not self._is_closed or not self.context.verifies_tokens:
            return ()
        return (
            istio_access.tokens(self.context, caller_access.issuers()),
            istio_access.access(self.context, caller_access.principals(self.deployment)),
        )

    @cached_property
    def team_policies(self) -> Sequence[Manifest]:
        """The policies and the route of the team's address, which other deployments share. Empty where this one
        does not serve there.
        """
        is_there = self._is_closed and bool(self.backends[0].team_models)
        serves_there = self.access.serves_team_address and not self.context.verifies_tokens
        if not is_there or not serves_there:
            return ()
        deployment = self.deployment
        members = team_members.list_members(
            team_id=deployment.team_id, cluster_id=deployment.cluster_id
        )
        return team_address.manifests(self.context, members.all)

    @property
    def _is_closed(self) -> bool:
        return bool(self.keys) and self.has_route

    @cached_property
    def weights(self) -> Mapping[str, int]:
        return http_route.weights_of(self.context, self.backends)

    @cached_property
    def mirrors(self) -> Mapping[str, int]:
        return http_route.mirrors_of(self.context, self.backends)

    @cached_property
    def paths(self) -> frozenset[str]:
        """The paths as route_paths.paths_in reads them from the live route. Empty without a route."""
        return route_paths.paths_in(self.route if self.has_route else None)

    @property
    def has_route(self) -> bool:
        """A route without a weighted backend would answer nothing."""
        return any(backend.weight for backend in self.backends)

    def row_of(self, number: int) -> Revision:
        return next(revision for revision in self.revisions if revision.number == number)

    def spec_of(self, revision: Revision) -> ServingSpec:
        if revision.number not in self._specs:
            self._specs[revision.number] = self._desired(revision)
        return self._specs[revision.number]

    def _desired(self, revision: Revision) -> ServingSpec:
        """Return the approved spec; a candidate that does not get all requests may have fewer replicas, and its
        baseline as many as it has.
        """
        deployment, spec = self.deployment, rendering.spec_of(revision)
        count = deployment.candidate_replicas
        if count is None or revision.pk == deployment.stable_revision_id:
            return spec
        if revision.pk == deployment.baseline_revision_id:
            count = min(count, spec.min_replicas)
        return replicas.reduce_replicas(spec, count)

    def service_of(self, revision: Revision) -> str:
        """Return the name of the Service behind the route."""
        spec = self.spec_of(revision)
        return http_route.service_name(self.deployment.name, revision.number, spec)

    def render_revision(self, revision: Revision) -> RenderedRevision:
        if revision.number not in self._rendered:
            self._rendered[revision.number] = render(
                self.context,
                number=revision.number,
                version=revision.version,
                spec=self.spec_of(revision),
                is_baseline=revision.baseline_of_id is not None,
            )
        return self._rendered[revision.number]
