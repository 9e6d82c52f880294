"""The objects that all deployments in a team's namespace share.

They have no deployment's labels, so they are never pruned as orphans.
"""

from __future__ import annotations

import base64

from deployments.manifests.domain import pod_template, triton_args
from deployments.manifests.domain.metadata import (
    MANAGED_BY,
    RUNTIME,
    S3_CREDENTIALS,
    SERVICE_ACCOUNT,
    Manifest,
    ManifestContext,
    team_secret_of,
)


def _team_labels(context: ManifestContext) -> dict[str, str]:
    return {**MANAGED_BY, "slipway.dev/team": context.team}


def namespace(context: ManifestContext) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": context.namespace,
            "labels": {**_team_labels(context), **_pod_security(context)},
        },
    }


def _pod_security(context: ManifestContext) -> dict[str, str]:
    """Return labels that make the API server refuse or warn about pods, whoever creates them."""
    standard = "pod-security.kubernetes.io"
    return {
        f"{standard}/enforce": context.pod_security,
        f"{standard}/enforce-version": "latest",
        f"{standard}/audit": "restricted",
        f"{standard}/warn": "restricted",
    }


def service_account(context: ManifestContext) -> Manifest:
    """Return the service account. Pods read models as this account: by IRSA on EKS, elsewhere by the keys of a
    Secret.
    """
    meta = {
        "name": SERVICE_ACCOUNT,
        "namespace": context.namespace,
        "labels": _team_labels(context),
    }
    account: Manifest = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": meta,
        "automountServiceAccountToken": False,
    }
    secret = team_secret_of(context)
    if secret:
        return {**account, "secrets": [{"name": secret}]}
    if context.role_arn:
        annotations = {
            "eks.amazonaws.com/role-arn": context.role_arn,
            "serving.kserve.io/s3-region": context.s3_region,
        }
        return {**account, "metadata": {**meta, "annotations": annotations}}
    return account


def s3_secret(context: ManifestContext, *, access_key_id: str, secret_access_key: str) -> Manifest:
    """Return the Secret with S3 credentials. Only local clusters need it: their pods cannot assume a role that
    may read the bucket.
    """
    endpoint = context.s3_endpoint
    annotations = {
        "serving.kserve.io/s3-endpoint": endpoint.partition("://")[2],
        "serving.kserve.io/s3-region": context.s3_region,
        "serving.kserve.io/s3-usehttps": "1" if endpoint.startswith("https://") else "0",
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": {
            "name": S3_CREDENTIALS,
            "namespace": context.namespace,
            "labels": _team_labels(context),
            "annotations": annotations,
        },
        "data": {
            "AWS_ACCESS_KEY_ID": _encode(access_key_id),
            "AWS_SECRET_ACCESS_KEY": _encode(secret_access_key),
        },
    }


def serving_runtime(context: ManifestContext) -> Manifest:
    """Return the portal's ServingRuntime: KServe's own is pinned to an image of 2023 that lacks metrics which
    the portal reads.
    """
    container = {
        "name": "kserve-container",
        "image": context.triton_image,
        "args": triton_args.command(),
        "ports": [{"name": "http1", "containerPort": 8080, "protocol": "TCP"}],
        "securityContext": pod_template.security(),
        "resources": {
            "requests": {"cpu": "1", "memory": "2Gi"},
            "limits": {"cpu": "1", "memory": "2Gi"},
        },
    }
    return {
        "apiVersion": "serving.kserve.io/v1alpha1",
        "kind": "ServingRuntime",
        "metadata": {
            "name": RUNTIME,
            "namespace": context.namespace,
            "labels": _team_labels(context),
        },
        "spec": {
            "annotations": {
                "prometheus.kserve.io/port": "8002",
                "prometheus.kserve.io/path": "/metrics",
            },
            "multiModel": False,
            "supportedModelFormats": [{"name": "triton", "version": "2", "autoSelect": False}],
            "protocolVersions": ["v2", "grpc-v2"],
            "containers": [container],
        },
    }


def _encode(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
