"""Checks that look at the cluster for what a revision names there, or reads models with."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings

from deployments.manifests.domain import vllm
from deployments.manifests.domain.metadata import (
    RUNTIME,
    SERVICE_ACCOUNT,
    ManifestContext,
    ServedRevision,
    secret_of,
)
from deployments.models import ModelVersion
from deployments.preflight.domain.checks import Check
from deployments.preflight.gateways import iam
from deployments.registry.domain import object_keys, references
from deployments.spec.domain.engines import KSERVE_TRITON, KSERVE_VLLM
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.kube.domain.errors import ClusterError
from fleet.kube.services import objects
from portal.accounts.models import Team

_RUNTIME = "Runtime"
_ACCESS = "Access"
# Each costs two questions to IAM.
_TRIED_TEAMS = 3
_LATER_TEAM = "some-later-team"
_ROLE = "eks.amazonaws.com/role-arn"


@dataclass(frozen=True, slots=True)
class _Named:
    """An object of the cluster that the spec names at `path`."""

    path: str
    api_version: str
    kind: str
    name: str
    namespace: str | None = None


def of_runtime(context: ManifestContext, served: ServedRevision, *, cluster_id: int) -> list[Check]:
    """What the pods of a KServe engine are made from. Other engines need none."""
    spec = served.spec
    if spec.engine == KSERVE_TRITON or (spec.engine == KSERVE_VLLM and spec.nodes == 1):
        name = RUNTIME if spec.engine == KSERVE_TRITON else vllm.RUNTIME
        words = (
            f"{name} is created automatically in {context.namespace}, with {_image(context, spec)}."
        )
        return [Check(_RUNTIME, ok=True, detail=words)]
    if spec.engine != KSERVE_VLLM:
        return []
    named = _Named(
        "llm.nodes",
        "serving.kserve.io/v1alpha1",
        "ClusterServingRuntime",
        vllm.MULTI_NODE_RUNTIME,
    )
    fix = "Ask a platform admin to install KServe's runtimes (Helm chart kserve-runtime-configs)."
    return [_of_named(_RUNTIME, [named], fix=fix, cluster_id=cluster_id)]


def of_names(context: ManifestContext, spec: ServingSpec, *, cluster_id: int) -> list[Check]:
    """What has to be there before. Only where the spec names something."""
    named = []
    if spec.placement.priority_class:
        name = spec.placement.priority_class
        named.append(
            _Named("placement.priority_class", "scheduling.k8s.io/v1", "PriorityClass", name)
        )
    if spec.storage.service_account:
        name = spec.storage.service_account
        named.append(
            _Named("storage.service_account", "v1", "ServiceAccount", name, context.namespace)
        )
    if spec.storage.model_cache == "cluster":
        version, name = "serving.kserve.io/v1alpha1", context.cache_node_group
        named.append(_Named("storage.model_cache", version, "LocalModelNodeGroup", name))
    claim = _claim_of(spec)
    if claim:
        named.append(
            _Named("llm.artifact", "v1", "PersistentVolumeClaim", claim, context.namespace)
        )
    if not named:
        return []
    fix = "Enter an existing one, leave it empty, or ask a platform admin to create it."
    return [_of_named("Names", named, fix=fix, cluster_id=cluster_id)]


def _claim_of(spec: ServingSpec) -> str:
    """The volume that the weights lie on; empty where they lie elsewhere."""
    artifact = "" if spec.llm is None else spec.llm.artifact
    found = references.of_spec(hugging_face_id="", artifact=artifact)
    return found.name if found is not None and found.scheme == references.CLAIM else ""


def _of_named(check: str, named: list[_Named], *, fix: str, cluster_id: int) -> Check:
    missing = []
    try:
        missing = [one for one in named if not _is_there(one, cluster_id)]
    except ClusterError as error:
        words = f"{_list(named)} could not be verified: {error.message}"
        return Check(check, ok=None, detail=words, is_blocking=False)
    if missing:
        words = "; ".join(f"{one.path}: {one.kind} {one.name} does not exist" for one in missing)
        return Check(check, ok=False, detail=f"{words}.", fix=fix)
    return Check(check, ok=True, detail=f"{_list(named)} found.")


def _list(named: list[_Named]) -> str:
    return " and ".join(f"{one.kind} {one.name}" for one in named)


def _is_there(one: _Named, cluster_id: int) -> bool:
    found = objects.get(
        cluster_id=cluster_id,
        api_version=one.api_version,
        kind=one.kind,
        namespace=one.namespace,
        name=one.name,
    )
    return found is not None


def _image(context: ManifestContext, spec: ServingSpec) -> str:
    usual = context.triton_image if spec.engine == KSERVE_TRITON else context.vllm_image
    return spec.image or usual


def of_access(
    context: ManifestContext, served: ServedRevision, version: ModelVersion, *, cluster_id: int
) -> list[Check]:
    """Whether the pods' service account may read what the portal laid out for them."""
    llm = served.spec.llm
    if llm is not None and (llm.hugging_face_id or llm.artifact):
        return []
    secret = secret_of(context, served)
    account = served.spec.storage.service_account
    if context.is_local_cluster and not (account or served.spec.storage.secret):
        words = (
            "Pods use the portal's own keys, which can read it. These keys can read every "
            "team's models, so use a local cluster for testing only."
        )
        return [Check(_ACCESS, ok=True, detail=words)]
    if secret:
        words = (
            f"Pods use the keys in Secret {secret} in {context.namespace}. The portal does not "
            "read Secrets, so access is verified when pods start."
        )
        fix = f"Limit those keys to {object_keys.team_prefix(context.team)}."
        return [Check(_ACCESS, ok=None, detail=words, fix=fix, is_blocking=False)]
    role = _role_of(context, account, cluster_id) if account else context.role_arn
    if not role:
        words = f"Service account {account or SERVICE_ACCOUNT} has no role (IRSA)."
        fix = (
            "This works if nodes or Pod Identity can read the bucket. Otherwise set a role "
            "or a Secret."
        )
        return [Check(_ACCESS, ok=None, detail=words, fix=fix, is_blocking=False)]
    return [_of_role(role, version, context.team)]


def _role_of(context: ManifestContext, account: str, cluster_id: int) -> str:
    try:
        found = objects.get(
            cluster_id=cluster_id,
            api_version="v1",
            kind="ServiceAccount",
            namespace=context.namespace,
            name=account,
        )
    except ClusterError:
        return ""
    annotations = ((found or {}).get("metadata") or {}).get("annotations") or {}
    return str(annotations.get(_ROLE, ""))


def _of_role(role: str, version: ModelVersion, team: str) -> Check:
    """A role that reads another team's models is refused: whoever deploys could serve them."""
    if settings.SLIPWAY_S3_ENDPOINT_URL:
        words = f"Pods use {role}. The object store is not AWS, so IAM can't verify access."
        return Check(_ACCESS, ok=None, detail=words, is_blocking=False)
    own = object_keys.team_prefix(team)
    found = iam.may_read_only(
        role_arn=role,
        bucket=version.bucket,
        prefix=version.repository_prefix,
        others=[object_keys.team_prefix(other) for other in _others(team)],
    )
    fix = ""
    if found.is_too_wide:
        fix = (
            f"Limit it to {own}*: s3:GetObject on those objects, s3:ListBucket with that s3:prefix."
        )
    elif not found.ok:
        fix = f"Give the role s3:GetObject and s3:ListBucket on {own}*."
    # A policy of the bucket may allow what the role's own does not.
    return Check(_ACCESS, ok=found.ok, detail=found.words, fix=fix, is_blocking=found.is_too_wide)


def _others(team: str) -> list[str]:
    """Teams that a role is tried with: some that there are, and one that comes later."""
    rows = Team.objects.exclude(slug=team).order_by("slug")
    return [*rows.values_list("slug", flat=True)[:_TRIED_TEAMS], _LATER_TEAM]
