"""Check what a revision needs from the cluster: runtimes, named objects and read access to models."""

from __future__ import annotations

from django.conf import settings

from deployments.manifests.domain import sglang, tensorrt_llm, vllm
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
from deployments.registry.domain import external_weights, object_keys
from deployments.spec.domain.engines import (
    KSERVE_SGLANG,
    KSERVE_TENSORRT_LLM,
    KSERVE_TRITON,
    KSERVE_VLLM,
)
from deployments.spec.domain.placement import catalogue
from deployments.spec.domain.placement.setting import NamedObject
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.kube.domain.errors import ClusterError
from fleet.kube.services import objects
from portal.accounts.models import Team

_RUNTIME = "Runtime"
_ACCESS = "Access"
# Each takes two IAM simulations.
_MAX_TESTED_TEAMS = 3
_FUTURE_TEAM = "some-later-team"
# Created by the portal, in each namespace.
_RUNTIMES = {
    KSERVE_TRITON: RUNTIME,
    KSERVE_VLLM: vllm.RUNTIME,
    KSERVE_SGLANG: sglang.RUNTIME,
    KSERVE_TENSORRT_LLM: tensorrt_llm.RUNTIME,
}
_ROLE = "eks.amazonaws.com/role-arn"


def check_runtime(
    context: ManifestContext, served: ServedRevision, *, cluster_id: int
) -> list[Check]:
    """Check the KServe serving runtime of the engine. Other engines need none."""
    spec = served.spec
    if spec.engine in _RUNTIMES and spec.nodes == 1:
        detail = f"{_RUNTIMES[spec.engine]} is created automatically in {context.namespace}, with {_image(context, spec)}."
        return [Check(_RUNTIME, ok=True, detail=detail)]
    if spec.engine != KSERVE_VLLM:
        return []
    named = NamedObject(
        "llm.nodes",
        "serving.kserve.io/v1alpha1",
        "ClusterServingRuntime",
        vllm.MULTI_NODE_RUNTIME,
    )
    fix = "Ask a platform admin to install KServe's runtimes (Helm chart kserve-runtime-configs)."
    return [_check_objects(_RUNTIME, [named], fix=fix, cluster_id=cluster_id)]


def check_names(context: ManifestContext, spec: ServingSpec, *, cluster_id: int) -> list[Check]:
    """Check that objects named by the spec exist. Empty when it names none."""
    named = catalogue.named_objects(spec)
    if spec.storage.service_account:
        name = spec.storage.service_account
        named.append(
            NamedObject("storage.service_account", "v1", "ServiceAccount", name, context.namespace)
        )
    if spec.storage.model_cache == "cluster":
        version, name = "serving.kserve.io/v1alpha1", context.cache_node_group
        named.append(NamedObject("storage.model_cache", version, "LocalModelNodeGroup", name))
    claim = _claim_name(spec)
    if claim:
        named.append(
            NamedObject("llm.artifact", "v1", "PersistentVolumeClaim", claim, context.namespace)
        )
    if not named:
        return []
    fix = "Enter an existing one, leave it empty, or ask a platform admin to create it."
    return [_check_objects("Names", named, fix=fix, cluster_id=cluster_id)]


def _claim_name(spec: ServingSpec) -> str:
    """Return the PersistentVolumeClaim with the weights. Empty if they are not on a volume."""
    artifact = "" if spec.llm is None else spec.llm.artifact
    weights = external_weights.from_spec(hugging_face_id="", artifact=artifact)
    return weights.name if weights is not None and weights.scheme == external_weights.CLAIM else ""


def _check_objects(check: str, named: list[NamedObject], *, fix: str, cluster_id: int) -> Check:
    missing = []
    try:
        missing = [item for item in named if not _exists(item, cluster_id)]
    except ClusterError as error:
        detail = f"{_list(named)} could not be verified: {error.message}"
        return Check(check, ok=None, detail=detail, is_blocking=False)
    if missing:
        detail = "; ".join(
            f"{item.path}: {item.kind} {item.name} does not exist" for item in missing
        )
        return Check(check, ok=False, detail=f"{detail}.", fix=fix)
    return Check(check, ok=True, detail=f"{_list(named)} found.")


def _list(named: list[NamedObject]) -> str:
    return " and ".join(f"{item.kind} {item.name}" for item in named)


def _exists(item: NamedObject, cluster_id: int) -> bool:
    live = objects.get(
        cluster_id=cluster_id,
        api_version=item.api_version,
        kind=item.kind,
        namespace=item.namespace or None,
        name=item.name,
    )
    return live is not None


def _image(context: ManifestContext, spec: ServingSpec) -> str:
    images = {
        KSERVE_VLLM: context.vllm_image,
        KSERVE_SGLANG: context.sglang_image,
        KSERVE_TENSORRT_LLM: context.tensorrt_llm_image,
    }
    return spec.image or images.get(spec.engine, context.triton_image)


def check_access(
    context: ManifestContext, served: ServedRevision, version: ModelVersion, *, cluster_id: int
) -> list[Check]:
    """Check that the pods' service account can read the serving repository."""
    llm = served.spec.llm
    if llm is not None and (llm.hugging_face_id or llm.artifact):
        return []
    secret = secret_of(context, served)
    account = served.spec.storage.service_account
    if context.is_local_cluster and not (account or served.spec.storage.secret):
        detail = (
            "Pods use the portal's own keys, which can read it. These keys can read every "
            "team's models, so use a local cluster for testing only."
        )
        return [Check(_ACCESS, ok=True, detail=detail)]
    if secret:
        detail = (
            f"Pods use the keys in Secret {secret} in {context.namespace}. The portal does not "
            "read Secrets, so access is verified when pods start."
        )
        fix = f"Limit those keys to {object_keys.team_prefix(context.team)}."
        return [Check(_ACCESS, ok=None, detail=detail, fix=fix, is_blocking=False)]
    role = _find_role(context, account, cluster_id) if account else context.role_arn
    if not role:
        detail = f"Service account {account or SERVICE_ACCOUNT} has no role (IRSA)."
        fix = (
            "This works if nodes or Pod Identity can read the bucket. Otherwise set a role "
            "or a Secret."
        )
        return [Check(_ACCESS, ok=None, detail=detail, fix=fix, is_blocking=False)]
    return [_check_role(role, version, context.team)]


def _find_role(context: ManifestContext, account: str, cluster_id: int) -> str:
    try:
        account_object = objects.get(
            cluster_id=cluster_id,
            api_version="v1",
            kind="ServiceAccount",
            namespace=context.namespace,
            name=account,
        )
    except ClusterError:
        return ""
    annotations = ((account_object or {}).get("metadata") or {}).get("annotations") or {}
    return str(annotations.get(_ROLE, ""))


def _check_role(role: str, version: ModelVersion, team: str) -> Check:
    """Refuse a role that can read another team's models: any deployment could then serve them."""
    if settings.SLIPWAY_S3_ENDPOINT_URL:
        detail = f"Pods use {role}. The object store is not AWS, so IAM can't verify access."
        return Check(_ACCESS, ok=None, detail=detail, is_blocking=False)
    own = object_keys.team_prefix(team)
    access = iam.may_read_only(
        role_arn=role,
        bucket=version.bucket,
        prefix=version.repository_prefix,
        others=_other_team_prefixes(team),
    )
    fix = ""
    if access.is_too_wide:
        fix = (
            f"Limit it to {own}*: s3:GetObject on those objects, s3:ListBucket with that s3:prefix."
        )
    elif not access.ok:
        fix = f"Give the role s3:GetObject and s3:ListBucket on {own}*."
    # A bucket policy may allow what the role's own policy does not.
    return Check(
        _ACCESS, ok=access.ok, detail=access.message, fix=fix, is_blocking=access.is_too_wide
    )


def _other_team_prefixes(team: str) -> list[str]:
    """Return the prefixes of a few existing teams and of one that does not exist yet."""
    rows = Team.objects.exclude(slug=team).order_by("slug")
    slugs = [*rows.values_list("slug", flat=True)[:_MAX_TESTED_TEAMS], _FUTURE_TEAM]
    return [object_keys.team_prefix(slug) for slug in slugs]
