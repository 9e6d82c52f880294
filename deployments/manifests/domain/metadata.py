"""Input of all manifests, and their common parts: labels, annotations, resources and digests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from deployments.manifests.domain import yaml
from deployments.spec.domain.digests import digest_of
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.clusters.domain.provisioner import NOT_PROBED, NodeLabels

Manifest = dict[str, Any]
to_yaml = yaml.to_yaml

SERVICE_ACCOUNT: Final = "slipway-models"
# Made by the team in its namespace. KServe's download knows the key HF_TOKEN by name.
HUGGING_FACE_CREDENTIALS: Final = "slipway-hugging-face"
S3_CREDENTIALS: Final = "slipway-s3"
RUNTIME: Final = "slipway-triton"
DIGEST_ANNOTATION: Final = "slipway.dev/manifest-digest"
DEPLOYMENT_LABEL: Final = "slipway.dev/deployment"
DEPLOYMENT_ID_LABEL: Final = "slipway.dev/deployment-id"
PIPELINE_ID_LABEL: Final = "slipway.dev/pipeline-id"
REVISION_LABEL: Final = "slipway.dev/revision"
TRACK_LABEL: Final = "slipway.dev/track"
WORKLOAD_LABEL: Final = "slipway.dev/workload"
MANAGED_BY: Final = {"app.kubernetes.io/managed-by": "slipway"}


@dataclass(frozen=True, slots=True)
class ManifestContext:
    """The deployment, its cluster, and the images used there."""

    team: str
    namespace: str
    deployment: str
    deployment_id: int
    is_local_cluster: bool
    gateway_namespace: str
    gateway_name: str
    triton_image: str
    storage_image: str
    s3_endpoint: str = ""
    s3_region: str = ""
    # The role that pods assume to read models (IRSA); empty where none is set.
    role_arn: str = ""
    # The Secret whose S3 keys pods read with, where there are no roles.
    storage_secret: str = ""
    vllm_image: str = ""
    sglang_image: str = ""
    tensorrt_llm_image: str = ""
    # Where the cluster's own KEDA reaches Prometheus.
    prometheus_url: str = ""
    # The LocalModelNodeGroup whose nodes keep cached models.
    cache_node_group: str = ""
    # The labels by which the cluster's Prometheus selects monitors.
    monitor_labels: tuple[tuple[str, str], ...] = ()
    # The Pod Security Standard that the namespace enforces.
    pod_security: str = "restricted"
    # Addresses that pods may reach by HTTPS to download models.
    egress_cidrs: tuple[str, ...] = ("0.0.0.0/0", "::/0")
    # The addresses from which the cluster's API server reaches pods.
    control_plane_cidrs: tuple[str, ...] = ()
    # Namespaces whose pods read metrics: Prometheus and its like.
    metrics_namespaces: tuple[str, ...] = ("monitoring",)
    # Namespaces of the gateway's proxies, in addition to the Gateway's own.
    proxy_namespaces: tuple[str, ...] = ()
    # The Gateway verifies keys that the portal signs, by policies in its own namespace.
    verifies_tokens: bool = False
    # Whether pipelines on its cluster may have a key for deployments that need one.
    has_pipeline_keys: bool = False
    # The labels of nodes that pods may require.
    node_labels: NodeLabels = NOT_PROBED


@dataclass(frozen=True, slots=True)
class AdditionalModelFiles:
    """A version of multi-model serving; `uri` is Triton's directory of this model alone."""

    model_name: str
    version_label: str
    sha256: str
    uri: str
    size_mib: int = 0


@dataclass(frozen=True, slots=True)
class ServedFile:
    """A file that Triton serves. `path` is relative to Triton's repository in the pod."""

    path: str
    sha256: str


@dataclass(frozen=True, slots=True)
class ServedRevision:
    """A revision as manifests see it: its version, its files and its spec."""

    number: int
    model_name: str
    version_label: str
    sha256: str
    storage_uri: str
    spec: ServingSpec
    size_mib: int = 0
    # Which of the configurations beside config.pbtxt Triton loads; empty for config.pbtxt itself.
    config_name: str = ""
    # In the order of the spec.
    additional_models: tuple[AdditionalModelFiles, ...] = ()
    # All files that Triton's model repository may contain.
    files: tuple[ServedFile, ...] = ()
    # The address of external weights, which have no digest.
    source_uri: str = ""
    # Pods of the stable revision that a candidate is compared with.
    is_baseline: bool = False

    @property
    def model_uri(self) -> str:
        """The URI of Triton's directory of its own model alone."""
        return f"{self.storage_uri}{self.model_name}/"


def account_of(served: ServedRevision) -> str:
    """Return the service account of its pods."""
    return served.spec.storage.service_account or SERVICE_ACCOUNT


def secret_of(context: ManifestContext, served: ServedRevision) -> str:
    """Return the Secret whose S3 keys its pods read with. Empty where the account's role is enough."""
    storage = served.spec.storage
    if storage.secret or storage.service_account:
        return storage.secret
    return team_secret_of(context)


def team_secret_of(context: ManifestContext) -> str:
    """Return the team's Secret of the service account that the portal creates."""
    return S3_CREDENTIALS if context.is_local_cluster else context.storage_secret


def labels_of(context: ManifestContext, served: ServedRevision | None = None) -> dict[str, str]:
    labels = {
        **MANAGED_BY,
        "slipway.dev/team": context.team,
        DEPLOYMENT_LABEL: context.deployment,
        DEPLOYMENT_ID_LABEL: str(context.deployment_id),
    }
    if served is not None:
        labels[REVISION_LABEL] = str(served.number)
        if served.is_baseline:
            labels[TRACK_LABEL] = "baseline"
    return labels


def metadata(
    context: ManifestContext,
    name: str,
    served: ServedRevision | None = None,
    annotations: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "name": name,
        "namespace": context.namespace,
        "labels": labels_of(context, served),
    }
    if annotations:
        fields["annotations"] = dict(annotations)
    return fields


def version_annotations(served: ServedRevision) -> dict[str, str]:
    fields = {"slipway.dev/version": served.version_label}
    if served.source_uri:
        fields["slipway.dev/source"] = served.source_uri
    else:
        fields["slipway.dev/sha256"] = served.sha256
    if served.additional_models:
        fields["slipway.dev/additional-models"] = ", ".join(
            f"{model.version_label} {model.sha256}" for model in served.additional_models
        )
    if not served.spec.network.access_kind.opens_to_everyone:
        # The address has it once this revision is the stable one; here it is part of what is approved.
        fields["slipway.dev/access"] = served.spec.network.access
        if served.spec.network.token_issuer:
            fields["slipway.dev/token-issuer"] = served.spec.network.token_issuer
    if served.spec.network.team_address:
        fields["slipway.dev/team-address"] = "on"
    return fields


def secret_annotations(served: ServedRevision) -> dict[str, str]:
    """Return the one Secret that KServe reads where it downloads: S3 keys, or the token of gated weights."""
    llm = served.spec.llm
    is_gated = llm is not None and llm.gated
    secret = HUGGING_FACE_CREDENTIALS if is_gated else served.spec.storage.secret
    return {"serving.kserve.io/storageSecretName": secret} if secret else {}


def env_of(spec: ServingSpec) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in spec.env]


def is_workload(manifest: Mapping[str, Any]) -> bool:
    """Whether it is the one object of a revision that carries its digest."""
    return DIGEST_ANNOTATION in manifest["metadata"].get("annotations", {})


def is_of_revision(manifest: Mapping[str, Any]) -> bool:
    """Whether it belongs to one revision, not to the namespace."""
    return REVISION_LABEL in manifest["metadata"].get("labels", {})


def is_of_deployment(manifest: Mapping[str, Any]) -> bool:
    """Whether it belongs to one deployment, not to the namespace."""
    return DEPLOYMENT_ID_LABEL in manifest["metadata"].get("labels", {})


def with_digest(manifest: Manifest, content: Any) -> Manifest:
    """Annotate with the digest of `content`, so that the live object shows which content it has."""
    digest = digest_of(content)[:16]
    annotations = {**manifest["metadata"].get("annotations", {}), DIGEST_ANNOTATION: digest}
    return {**manifest, "metadata": {**manifest["metadata"], "annotations": annotations}}
