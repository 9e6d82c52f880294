"""The objects of a namespace without an identity that the portal's rows record as its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from deployments.manifests.domain.access import team_address
from deployments.manifests.domain.metadata import (
    DEPLOYMENT_ID_LABEL,
    PIPELINE_ID_LABEL,
    REVISION_LABEL,
)
from deployments.models import BatchJob, Deployment, LoadTestRun, Pipeline, Revision
from deployments.spec.domain.kubernetes_names import workload_name
from fleet.kube.services.ownership import Proof
from fleet.observation.domain.parse import parse_time

# Clocks of the portal and of an API server differ by less.
_SKEW: Final = timedelta(minutes=1)
_ROUTE: Final = "HTTPRoute"


def prove(cluster_id: int, namespace: str, items: Sequence[Mapping[str, Any]]) -> Proof:
    """Find the objects that no row records. An object is recorded if a row has its name and ids and is not
    younger than the object.
    """
    has_history = _has_history(cluster_id, namespace)
    unproven = [
        f"{item['kind']} {item['metadata']['name']}"
        for item in items
        if not _is_recorded(cluster_id, namespace, item, has_history=has_history)
    ]
    return Proof(unproven, has_history)


def _has_history(cluster_id: int, namespace: str) -> bool:
    place = {"cluster": cluster_id, "namespace": namespace, "observed_at__isnull": False}
    jobs = {"cluster": cluster_id, "team__slug": namespace}
    return (
        Deployment.objects.filter(**place).exists()
        or Pipeline.objects.filter(**place).exists()
        or BatchJob.objects.filter(**jobs).exists()
        or LoadTestRun.objects.filter(cluster=cluster_id, namespace=namespace).exists()
    )


def _is_recorded(
    cluster_id: int, namespace: str, item: Mapping[str, Any], *, has_history: bool
) -> bool:
    meta = item["metadata"]
    labels = meta.get("labels") or {}
    if team_address.LABEL in labels:
        return has_history
    since = _recorded_since(cluster_id, namespace, item, labels)
    created_at = parse_time(meta.get("creationTimestamp"))
    return since is not None and (created_at is None or created_at >= since - _SKEW)


def _recorded_since(
    cluster_id: int, namespace: str, item: Mapping[str, Any], labels: Mapping[str, str]
) -> datetime | None:
    name, place = item["metadata"]["name"], {"cluster": cluster_id, "namespace": namespace}
    if pipeline_id := _number(labels, PIPELINE_ID_LABEL):
        pipelines = Pipeline.objects.filter(pk=pipeline_id, name=name, **place)
        return pipelines.values_list("created_at", flat=True).first()
    deployments = Deployment.objects.filter(pk=_number(labels, DEPLOYMENT_ID_LABEL), **place)
    deployment = deployments.only("name", "created_at").first()
    if deployment is None:
        return None
    if item["kind"] == _ROUTE:
        return deployment.created_at if name == deployment.name else None
    number = _number(labels, REVISION_LABEL)
    if name != workload_name(deployment.name, number):
        return None
    revisions = Revision.objects.filter(deployment=deployment, number=number)
    return revisions.values_list("created_at", flat=True).first()


def _number(labels: Mapping[str, str], label: str) -> int:
    """Read a number from a label. 0, which no row has, without one."""
    text = labels.get(label, "")
    return int(text) if text.isdecimal() else 0
