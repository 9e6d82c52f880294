"""The keys by which a pipeline calls deployments that need one: made, brought to them, rotated and ended.

KServe's router has no Secret of its own. The gateway puts the key on each request of the pipeline's address, and
the router passes that header on (ADR 48). Each deployment has the key as a CallerKey that nobody can list, change
or use by hand; so it is counted, billed and pushed as those of other callers are. Open deployments beside them have
it too: their routes then take the header away, which their model would see otherwise.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction

from deployments import audit_actions
from deployments.access.domain.headers import KEY_PREFIX
from deployments.callers.selectors.keys import SEALED
from deployments.callers.services import key_rows
from deployments.models import CallerKey, Consumer, Deployment, KeysAtGateway, Pipeline, PipelineKey
from deployments.pipelines.domain import manifests
from deployments.pipelines.selectors import pipelines
from deployments.spec.domain import serving_spec
from deployments.states import ConsumerKind
from fleet.kube.services import objects
from portal.accounts.policy import SYSTEM
from portal.core import clock, sealing

ROTATE_AFTER: Final = timedelta(days=30)
# So long a pipeline goes on whose portal is away.
_LIFETIME: Final = timedelta(days=90)
# Proxies follow the Secret within seconds.
OVERLAP: Final = timedelta(hours=1)
# Nobody may read the Secret back, so that it was deleted is not seen.
_WRITE_AGAIN_AFTER: Final = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class RouterKey:
    """The key that the router uses now. `row` is None before any is in use. `waits_for` names the deployments that
    do not accept it yet.
    """

    row: PipelineKey | None
    waits_for: str = ""


def prepare(pipeline: Pipeline, names: Collection[str]) -> RouterKey:
    """Have these deployments accept the pipeline's keys, and no others. Return the key to use now."""
    at = clock.now()
    with transaction.atomic():
        Pipeline.objects.select_for_update(no_key=True).get(pk=pipeline.pk)
        members = _members(pipeline, names)
        kept = _open(pipeline)
        newest = kept[-1] if kept else None
        if newest is None or _is_over(newest, at):
            newest = PipelineKey.objects.create(
                pipeline=pipeline,
                sealed=sealing.seal(SEALED, KEY_PREFIX + secrets.token_urlsafe(32)),
                created_at=at,
            )
            kept.append(newest)
        _give_up(pipeline, [row.pk for row in members])
        for key in kept:
            for member in members:
                _issue(pipeline, key, member, at)
        late = [member for member in members if _is_late(member)]
        if not late:
            return RouterKey(_take_over(kept, at))
        used = [key for key in kept if key.written_at is not None and _plain(key)]
        if not used:
            return RouterKey(None, ", ".join(member.name for member in late))
        new = [member.name for member in late if not _has(member, used[-1])]
        return RouterKey(used[-1], ", ".join(new))


def write(pipeline: Pipeline, key: PipelineKey) -> None:
    """Bring the key to the gateway if it is not, or may no longer be. Raises ClusterError."""
    at = clock.now()
    if key.written_at is not None and at - key.written_at < _WRITE_AGAIN_AFTER:
        return
    plain = _plain(key)
    secret = manifests.secret(pipelines.context_of(pipeline), plain)
    objects.apply(cluster_id=pipeline.cluster_id, manifests=[secret], force=True)
    PipelineKey.objects.filter(pk=key.pk).update(written_at=at)


def remove(pipeline: Pipeline) -> None:
    """Take the key from the gateway. Raises ClusterError."""
    objects.delete(
        cluster_id=pipeline.cluster_id,
        api_version="v1",
        kind="Secret",
        namespace=pipeline.namespace,
        name=manifests.secret_name(pipeline.name),
    )


def has_open(pipeline: Pipeline) -> bool:
    return PipelineKey.objects.filter(pipeline=pipeline, ended_at=None).exists()


def end(pipeline: Pipeline) -> None:
    """End the pipeline's keys, so that no deployment accepts one any more."""
    with transaction.atomic():
        for key in _open(pipeline):
            _end(key, clock.now())


def _open(pipeline: Pipeline) -> list[PipelineKey]:
    return list(PipelineKey.objects.filter(pipeline=pipeline, ended_at=None).order_by("pk"))


def _members(pipeline: Pipeline, names: Collection[str]) -> list[Deployment]:
    rows = Deployment.objects.filter(
        team=pipeline.team_id, cluster=pipeline.cluster_id, is_retired=False, name__in=names
    )
    return list(rows.select_related("team", "cluster", "stable_revision").order_by("name"))


def _is_over(key: PipelineKey, at: datetime) -> bool:
    return key.created_at + ROTATE_AFTER <= at or not _plain(key)


def _plain(key: PipelineKey) -> str:
    """Unseal the key. Empty if the portal's secret key changed."""
    try:
        return sealing.unseal(SEALED, key.sealed)
    except sealing.UnreadableSecret:
        return ""


def _issue(pipeline: Pipeline, key: PipelineKey, member: Deployment, at: datetime) -> None:
    plain, ends_at = _plain(key), key.created_at + _LIFETIME
    rows = CallerKey.objects.filter(pipeline_key=key, deployment=member, ended_at=None)
    if not plain or ends_at <= at or rows.exists():
        return
    row = CallerKey.objects.create(
        consumer=_consumer(pipeline, at),
        deployment=member,
        pipeline_key=key,
        prefix=plain[:10],
        # One text for several deployments; nobody looks a key up by it.
        sha256=hashlib.sha256(f"{plain} {member.pk} {at.isoformat()}".encode()).hexdigest(),
        sealed=key.sealed,
        created_by_id=pipeline.created_by_id,
        created_at=at,
        ends_at=ends_at,
    )
    key_rows.record(SYSTEM, audit_actions.CALLER_KEY_CREATED, row, "created")


def _consumer(pipeline: Pipeline, at: datetime) -> Consumer:
    """Return the consumer of the pipeline's keys, or create it. No caller that a person names has a dot in its
    name.
    """
    row, _ = Consumer.objects.get_or_create(
        team_id=pipeline.team_id,
        name=f"pipeline.{pipeline.name}",
        defaults={
            "kind": ConsumerKind.SERVICE,
            "contact": f"the pipeline {pipeline}",
            "created_by_id": pipeline.created_by_id,
            "created_at": at,
        },
    )
    return row


def _is_late(member: Deployment) -> bool:
    """Whether its gateway lacks a key that it was told to accept. An open one asks for none."""
    stable = member.stable_revision
    if stable is None or member.is_stopped or member.is_retiring:
        return False
    if not serving_spec.read_stored(stable.spec).network.access_kind.takes_pipeline_key:
        return False
    row = KeysAtGateway.objects.filter(deployment=member).first()
    generation = Deployment.objects.values_list("caller_keys_generation", flat=True)
    return row is not None and row.written_generation < generation.get(pk=member.pk)


def _has(member: Deployment, key: PipelineKey) -> bool:
    """Whether its gateway was written after the member got the key, although a later change is on its way."""
    row = CallerKey.objects.filter(pipeline_key=key, deployment=member, ended_at=None).first()
    at_gateway = KeysAtGateway.objects.filter(deployment=member).first()
    if row is None or at_gateway is None or at_gateway.written_at is None:
        return False
    return row.created_at < at_gateway.written_at


def _take_over(kept: Sequence[PipelineKey], at: datetime) -> PipelineKey:
    """Return the newest key. The others end once proxies surely use it."""
    *older, newest = kept
    for key in older:
        if newest.written_at is None:
            continue
        if key.replaced_at is None:
            PipelineKey.objects.filter(pk=key.pk).update(replaced_at=at)
        elif key.replaced_at + OVERLAP <= at:
            _end(key, at)
    return newest


def _give_up(pipeline: Pipeline, members: Collection[int]) -> None:
    """Revoke the keys of deployments that the pipeline no longer calls."""
    rows = CallerKey.objects.filter(pipeline_key__pipeline=pipeline, ended_at=None)
    for row in rows.exclude(deployment__in=members).select_related("consumer", "deployment__team"):
        _revoke(row, clock.now())


def _end(key: PipelineKey, at: datetime) -> None:
    PipelineKey.objects.filter(pk=key.pk).update(ended_at=at, sealed="")
    rows = CallerKey.objects.filter(pipeline_key=key, ended_at=None)
    for row in rows.select_related("consumer", "deployment__team"):
        _revoke(row, at)


def _revoke(row: CallerKey, at: datetime) -> None:
    changed = CallerKey.objects.filter(pk=row.pk, ended_at=None).update(
        ended_at=at, is_revoked=True, sealed=""
    )
    if changed:
        key_rows.record(SYSTEM, audit_actions.CALLER_KEY_REVOKED, row, "revoked")
