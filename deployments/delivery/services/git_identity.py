"""The identity of the installation in what is committed: the operator that applies it checks nothing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from deployments.manifests.domain.metadata import REVISION_LABEL, Manifest
from deployments.models import Deployment, Pipeline
from fleet.kube.domain import ownership
from fleet.kube.domain.errors import ClusterError
from fleet.kube.services import installation, namespaces


def stamp(subject: Deployment | Pipeline, manifests: Sequence[Manifest]) -> list[Manifest]:
    """Return the manifests with the identity. Models from before it keep their labels, so that they do not restart."""
    current = installation.read()
    since = current.created_at
    return [
        manifest
        if manifest["kind"] in ownership.COPIED_TO_PODS and _created_at(subject, manifest) < since
        else ownership.stamp(manifest, current.identity, None)
        for manifest in manifests
    ]


def problem_of(subject: Deployment | Pipeline) -> str:
    """Return why nothing may be committed. Empty if the namespace is, or becomes, the portal's."""
    try:
        installation.read().require_active()
        refused = namespaces.list_refused(cluster_id=subject.cluster_id, names=[subject.namespace])
    except ClusterError as error:
        return error.message
    return " ".join(refused)


def _created_at(subject: Deployment | Pipeline, manifest: Manifest) -> datetime:
    if isinstance(subject, Pipeline):
        return subject.created_at
    number = int(manifest["metadata"]["labels"].get(REVISION_LABEL, 0))
    rows = subject.revisions.filter(number=number).values_list("created_at", flat=True)
    return rows.first() or subject.created_at
