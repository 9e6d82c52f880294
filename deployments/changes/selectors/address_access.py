"""Who gets answers at an address once a change is applied, as approvers and rules see it."""

from __future__ import annotations

from typing import Final

from deployments.changes.selectors.subjects import deployment_of
from deployments.models import ChangeRequest, Revision
from deployments.spec.domain import access, serving_spec
from deployments.spec.domain.pod_settings import OPEN
from deployments.states import ChangeKind

# Before them nothing answers at the address.
_FROM_NOTHING: Final = (ChangeKind.DEPLOY, ChangeKind.START)


def of_change(change: ChangeRequest) -> str:
    """`open` or `keys`; empty for a change that brings no revision."""
    return _access_of(change.revision) if change.revision else ""


def is_opening(change: ChangeRequest) -> bool:
    """Whether callers without a key get answers that they did not get before."""
    if of_change(change) != OPEN:
        return False
    if change.kind in _FROM_NOTHING:
        return True
    stable = deployment_of(change).stable_revision
    return stable is None or _access_of(stable) != OPEN


def consequence(change: ChangeRequest) -> str:
    """A sentence for approvers. Empty where no address is opened."""
    return access.DESCRIPTIONS[OPEN] if is_opening(change) else ""


def _access_of(revision: Revision) -> str:
    return serving_spec.stored(revision.spec).network.access
