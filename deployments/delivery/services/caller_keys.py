"""Bring the keys of callers to the gateway, before the route that needs them.

The Secret goes to the cluster directly also where a team delivers through Git: keys are never committed. So do
policies in the Gateway's namespace, which is the platform's: a revoked key must not wait for a commit.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from django.db.models import Q

from deployments.access.domain.kind import Credential
from deployments.callers.selectors import keys
from deployments.delivery.services import git_backend
from deployments.manifests.domain.access import caller_keys, istio_access, team_address
from deployments.manifests.domain.metadata import Manifest
from deployments.manifests.selectors.rendered import RenderedDeployment
from deployments.models import Deployment, KeysAtGateway
from deployments.serving.selectors import revisions
from fleet.kube.domain.errors import (
    ClusterError,
    NotAllowed,
    NotAttempted,
    Throttled,
    Unreachable,
    describe_error,
)
from fleet.kube.services import objects
from fleet.kube.services.objects import Group
from portal.core import clock

logger = logging.getLogger(__name__)

_ON_THE_WAY: Final = (NotAttempted, Throttled, Unreachable)


@dataclass(frozen=True, slots=True)
class PolicyRefusal:
    """A refusal of a policy of callers. `is_limit` means that who may call is as it should be, and only how often
    is not.
    """

    error: ClusterError
    is_limit: bool

    @property
    def description(self) -> str:
        what = "limits" if self.is_limit else "keys"
        return f"the cluster refused {what} of callers: {describe_error(self.error)}"


def push(
    rendered: Sequence[RenderedDeployment], *, is_direct: Callable[[int], bool]
) -> dict[int, PolicyRefusal]:
    """Push the Secrets and policies of deployments that need keys. Returns the refusals by deployment."""
    for item in rendered:
        if item.context.verifies_tokens and not item.keys:
            # It would go on denying what was approved to be open.
            delete_gateway_access(item)
    closed = [item for item in rendered if item.caller_policies or item.gateway_policies]
    if not closed:
        return {}
    current = keys.read_current_keys([item.deployment.pk for item in closed])
    parts: list[tuple[int, bool, Sequence[Manifest]]] = []
    for item in closed:
        pk = item.deployment.pk
        manifests = _manifests(item, current.get(pk, {}), is_direct=is_direct(pk))
        access, limits = _split(manifests)
        parts.append((pk, False, access))
        parts += [(pk, True, limits)] if limits else []
    groups = [Group(manifests, force=True) for _, _, manifests in parts]
    results = objects.apply_groups(cluster_id=closed[0].deployment.cluster_id, groups=groups)
    refusals: dict[int, PolicyRefusal] = {}
    for (pk, is_limit, _), result in zip(parts, results, strict=True):
        if isinstance(result, ClusterError) and pk not in refusals:
            refusals[pk] = PolicyRefusal(result, is_limit)
    for item in closed:
        _note(item.deployment, refusals.get(item.deployment.pk))
    return refusals


def push_at_once(*, deployment_id: int) -> None:
    """Push a person's change at once, before any queue, whoever holds the deployment's lease.

    Its next pass writes the same again, with the route, and is what counts: a failure here costs only time.
    """
    rows = Deployment.objects.select_related("team", "cluster").filter(
        is_retired=False, is_retiring=False, is_stopped=False, first_ready_at__isnull=False
    )
    row = rows.filter(pk=deployment_id).first()
    if row is None:
        return
    revisions.load_onto(row)
    item = RenderedDeployment(row)
    if not item.keys:
        return
    is_direct = git_backend.backend_for(row) is None
    try:
        push([item], is_direct=lambda _: is_direct)
        if Deployment.objects.filter(Q(is_retiring=True) | Q(is_retired=True), pk=row.pk).exists():
            # Its pass may have removed them a moment before.
            delete(row)
    except ClusterError as error:
        logger.warning("keys of %s were not pushed at once: %s", row, error.message)


def _note(deployment: Deployment, refusal: PolicyRefusal | None) -> None:
    """Note the result of a push. A failure on the way says nothing about the keys, so it is tried again."""
    if refusal is None:
        _note_written(deployment)
    elif not isinstance(refusal.error, _ON_THE_WAY):
        problem = describe_error(refusal.error)
        _note_refused(deployment, problem, is_limit=refusal.is_limit)


def _note_written(deployment: Deployment) -> None:
    """Note that the keys are written as they were when the row was read, unless newer ones are noted already."""
    generation = deployment.caller_keys_generation
    KeysAtGateway.objects.filter(deployment=deployment, written_generation__lte=generation).exclude(
        problem="", written_generation=generation
    ).update(written_generation=generation, written_at=clock.now(), problem="", is_limit=False)


def _note_refused(deployment: Deployment, problem: str, *, is_limit: bool) -> None:
    KeysAtGateway.objects.update_or_create(
        deployment=deployment,
        defaults={"problem": problem, "is_limit": is_limit},
        create_defaults={
            "problem": problem,
            "is_limit": is_limit,
            "changed_at": clock.now(),
        },
    )


def _split(manifests: Sequence[Manifest]) -> tuple[list[Manifest], list[Manifest]]:
    """Split the manifests into who may call and how often, so that the one never waits for the other."""
    limits = [item for item in manifests if item["kind"] == caller_keys.LIMITS_KIND]
    return [item for item in manifests if item not in limits], limits


def _manifests(
    item: RenderedDeployment, keys_by_client: Mapping[str, str], *, is_direct: bool
) -> Sequence[Manifest]:
    if item.gateway_policies:
        return item.gateway_policies
    manifests: list[Manifest] = []
    is_listed = item.access.creates is Credential.CLAIM
    if not is_listed:
        manifests.append(caller_keys.secret(item.context, keys_by_client))
    if item.team_policies:
        manifests.append(team_address.secret(item.context, keys_by_client))
    # Where the policy lists the callers, one that is taken off must not wait for a commit.
    if is_direct or is_listed:
        manifests += item.caller_policies
    return manifests


def delete_gateway_access(item: RenderedDeployment) -> None:
    """Delete the policy of access in the Gateway's namespace. Raises ClusterError."""
    policy = istio_access.access(item.context, ())
    # Who may not delete it never wrote it.
    with suppress(NotAllowed):
        objects.delete(
            cluster_id=item.deployment.cluster_id,
            api_version=policy["apiVersion"],
            kind=policy["kind"],
            namespace=policy["metadata"]["namespace"],
            name=policy["metadata"]["name"],
        )


def delete(deployment: Deployment) -> None:
    for name in (
        caller_keys.secret_name(deployment.name),
        team_address.secret_name(deployment.name),
    ):
        objects.delete(
            cluster_id=deployment.cluster_id,
            api_version="v1",
            kind="Secret",
            namespace=deployment.namespace,
            name=name,
        )
