"""Checks that look at the cluster for what a revision names there, or reads models with."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings

from deployments.domain import references
from deployments.domain.manifests import vllm
from deployments.domain.manifests.parts import (
    RUNTIME,
    SERVICE_ACCOUNT,
    Place,
    Served,
    secret_of,
)
from deployments.domain.preflight import Check
from deployments.domain.spec_engines import KSERVE_TRITON, KSERVE_VLLM
from deployments.domain.specs import ServingSpec
from deployments.gateways import role_access
from deployments.models import ModelVersion
from fleet.domain.cluster_errors import ClusterError
from fleet.services import objects

_RUNTIME = "Runtime"
_ACCESS = "Access"
_ROLE = "eks.amazonaws.com/role-arn"


@dataclass(frozen=True, slots=True)
class _Named:
    """An object of the cluster that the spec names at `path`."""

    path: str
    api_version: str
    kind: str
    name: str
    namespace: str | None = None


def of_runtime(place: Place, served: Served, *, cluster_id: int) -> list[Check]:
    """What the pods of a KServe engine are made from. Other engines need none."""
    spec = served.spec
    if spec.engine == KSERVE_TRITON or (spec.engine == KSERVE_VLLM and spec.nodes == 1):
        name = RUNTIME if spec.engine == KSERVE_TRITON else vllm.RUNTIME
        words = f"{name} comes along in {place.namespace}, with {_image(place, spec)}."
        return [Check(_RUNTIME, ok=True, detail=words)]
    if spec.engine != KSERVE_VLLM:
        return []
    named = _Named(
        "llm.nodes",
        "serving.kserve.io/v1alpha1",
        "ClusterServingRuntime",
        vllm.MULTI_NODE_RUNTIME,
    )
    fix = "A platform admin installs KServe's runtimes (the chart kserve-runtime-configs)."
    return [_of_named(_RUNTIME, [named], fix=fix, cluster_id=cluster_id)]


def of_names(place: Place, spec: ServingSpec, *, cluster_id: int) -> list[Check]:
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
            _Named("storage.service_account", "v1", "ServiceAccount", name, place.namespace)
        )
    if spec.storage.model_cache == "cluster":
        version, name = "serving.kserve.io/v1alpha1", place.cache_node_group
        named.append(_Named("storage.model_cache", version, "LocalModelNodeGroup", name))
    claim = _claim_of(spec)
    if claim:
        named.append(_Named("llm.artifact", "v1", "PersistentVolumeClaim", claim, place.namespace))
    if not named:
        return []
    fix = "Name one that is there, leave it empty, or ask a platform admin to make it."
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
        words = f"Whether {_list(named)} is there is not known: {error.message}"
        return Check(check, ok=None, detail=words, is_blocking=False)
    if missing:
        words = "; ".join(f"{one.path}: there is no {one.kind} {one.name}" for one in missing)
        return Check(check, ok=False, detail=f"{words}.", fix=fix)
    return Check(check, ok=True, detail=f"{_list(named)} is there.")


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


def _image(place: Place, spec: ServingSpec) -> str:
    usual = place.triton_image if spec.engine == KSERVE_TRITON else place.vllm_image
    return spec.image or usual


def of_access(
    place: Place, served: Served, version: ModelVersion, *, cluster_id: int
) -> list[Check]:
    """Whether the pods' service account may read what the portal laid out for them."""
    llm = served.spec.llm
    if llm is not None and (llm.hugging_face_id or llm.artifact):
        return []
    secret = secret_of(place, served)
    account = served.spec.storage.service_account
    if place.is_local_cluster and not (account or served.spec.storage.secret):
        words = "Pods read with the portal's own keys, which have just read it."
        return [Check(_ACCESS, ok=True, detail=words)]
    if secret:
        words = (
            f"Pods read with the keys of Secret {secret} in {place.namespace}. The portal looks at "
            "no Secrets, so whether they may is seen at the start."
        )
        return [Check(_ACCESS, ok=None, detail=words, is_blocking=False)]
    role = _role_of(place, account, cluster_id) if account else place.role_arn
    if not role:
        words = f"Service account {account or SERVICE_ACCOUNT} has no role (IRSA)."
        fix = "Right where nodes or Pod Identity may read the bucket; else set a role or a Secret."
        return [Check(_ACCESS, ok=None, detail=words, fix=fix, is_blocking=False)]
    return [_of_role(role, version)]


def _role_of(place: Place, account: str, cluster_id: int) -> str:
    try:
        found = objects.get(
            cluster_id=cluster_id,
            api_version="v1",
            kind="ServiceAccount",
            namespace=place.namespace,
            name=account,
        )
    except ClusterError:
        return ""
    annotations = ((found or {}).get("metadata") or {}).get("annotations") or {}
    return str(annotations.get(_ROLE, ""))


def _of_role(role: str, version: ModelVersion) -> Check:
    if settings.SLIPWAY_S3_ENDPOINT_URL:
        words = f"Pods read as {role}; the object store is not AWS, so IAM knows nothing of it."
        return Check(_ACCESS, ok=None, detail=words, is_blocking=False)
    found = role_access.may_read(
        role_arn=role, bucket=version.bucket, prefix=version.repository_prefix
    )
    fix = "" if found.ok else "Give the role s3:GetObject and s3:ListBucket on the bucket."
    # A policy of the bucket may allow what the role's own does not.
    return Check(_ACCESS, ok=found.ok, detail=found.words, fix=fix, is_blocking=False)
