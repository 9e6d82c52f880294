"""Level-triggered observation of every cluster: correct without a watcher, only slower."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

from django.db import connection

from fleet.clusters.services import capabilities
from fleet.kube.domain import resource_types
from fleet.kube.domain.errors import ClusterError, NotAllowed, ObjectNotFound
from fleet.kube.domain.resource_types import Manifest
from fleet.kube.gateways.kube_client import KubeClient
from fleet.kube.services import clients
from fleet.models import Cluster
from fleet.observation.services import record
from fleet.observation.services.record import FullListing
from portal.core import clock, leases

logger = logging.getLogger(__name__)

_THREADS = 8
# Constant, so that a cluster that answers again is soon observed.
_UNREACHABLE_SECONDS = 8.0
_LEASE_SECONDS = 60
_POLL_INTERVAL = timedelta(seconds=5)
_POLL_INTERVAL_WATCHED = timedelta(seconds=30)
_WATCHER_STALE_AFTER = timedelta(seconds=15)


def observe_due() -> None:
    """Observe each cluster that is due. One that hangs does not delay the others."""
    due = leases.due(Cluster)
    if len(due) <= 1:
        for cluster_id in due:
            observe(cluster_id=cluster_id)
        return
    with ThreadPoolExecutor(min(_THREADS, len(due))) as pool:
        for done in [pool.submit(_observe_in_thread, cluster_id) for cluster_id in due]:
            done.result()


def _observe_in_thread(cluster_id: int) -> None:
    try:
        observe(cluster_id=cluster_id)
    finally:
        connection.close()


def observe(*, cluster_id: int) -> None:
    """List objects, write rows and schedule the next observation. Does nothing while another worker
    holds the lease.
    """
    lease = leases.claim(Cluster, cluster_id, seconds=_LEASE_SECONDS)
    if lease is None:
        return
    at = clock.now()
    try:
        _list_and_record(cluster_id, at)
    except ClusterError as error:
        _note_failure(cluster_id, error)
        leases.back_off(Cluster, lease, cap_seconds=_UNREACHABLE_SECONDS)
        return
    cluster = Cluster.objects.get(pk=cluster_id)
    is_watched = (
        cluster.watch_seen_at is not None and at - cluster.watch_seen_at < _WATCHER_STALE_AFTER
    )
    wait = _POLL_INTERVAL_WATCHED if is_watched else _POLL_INTERVAL
    leases.release(Cluster, lease, next_check_at=at + wait)


def observe_now(*, cluster_id: int) -> None:
    """List, record and probe, whoever else does: recording twice changes nothing. Raises ClusterError."""
    _list_and_record(cluster_id, clock.now(), is_probed=True)


def _list_and_record(cluster_id: int, at: datetime, *, is_probed: bool = False) -> None:
    client = clients.client_for(cluster_id)
    # Pods first, so that the nodes of all listed pods are in the later listing of nodes.
    pods = client.list_all(resource_types.POD)
    nodes = client.list_all(resource_types.NODE)
    record.replace_all(
        cluster_id=cluster_id,
        nodes=FullListing(nodes.items, _number(nodes.resource_version)),
        pods=FullListing(pods.items, _number(pods.resource_version)),
        at=at,
    )
    _list_devices(client, cluster_id, at)
    if is_probed or capabilities.is_due(Cluster.objects.get(pk=cluster_id), at):
        capabilities.probe(cluster_id=cluster_id)


def _list_devices(client: KubeClient, cluster_id: int, at: datetime) -> None:
    """List the DRA devices. If they cannot be read they become unknown, and nothing else fails."""
    try:
        slices = client.list_all(resource_types.RESOURCE_SLICE)
        claims = client.list_all(resource_types.RESOURCE_CLAIM)
    except (NotAllowed, ObjectNotFound):
        record.forget_devices(cluster_id=cluster_id)
        return
    record.replace_devices(
        cluster_id=cluster_id,
        slices=FullListing(slices.items, _number(slices.resource_version)),
        claims=FullListing(claims.items, _number(claims.resource_version)),
        at=at,
    )
    if slices.items:
        _list_taint_rules(client, cluster_id)


def _list_taint_rules(client: KubeClient, cluster_id: int) -> None:
    """List the DeviceTaintRules. If they may not be read, the stored rules stay and keep their devices out."""
    rules: Sequence[Manifest] = ()
    for kind in resource_types.DEVICE_TAINT_RULES:
        try:
            rules = client.list_all(kind).items
        except ObjectNotFound:
            continue
        except NotAllowed:
            return
        break
    record.record_taint_rules(cluster_id=cluster_id, rules=rules)


def _note_failure(cluster_id: int, error: ClusterError) -> None:
    cluster = Cluster.objects.filter(pk=cluster_id)
    if cluster.exclude(is_reachable=False).update(is_reachable=False):
        logger.warning("cluster %s cannot be observed: %s", cluster_id, error.message)
    cluster.update(last_error=error.message)


def _number(version: str) -> int:
    return int(version) if version.isdigit() else 0
