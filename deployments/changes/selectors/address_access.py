"""The access to an address once a change is applied, as approvers and rules see it."""

from __future__ import annotations

from typing import Final

from deployments.access.domain.kind import AccessKind
from deployments.changes.selectors.subjects import deployment_of
from deployments.models import ChangeRequest, Revision
from deployments.spec.domain import serving_spec
from deployments.states import ChangeKind

# Before them nothing answers at the address.
_FROM_NOTHING: Final = (ChangeKind.DEPLOY, ChangeKind.START)


def name_access(change: ChangeRequest) -> str:
    """Return the name of the kind of access. Empty for a change that brings no revision."""
    return _access_of(change.revision).name if change.revision else ""


def is_opening(change: ChangeRequest) -> bool:
    """Whether callers without a key get answers that they did not get before."""
    if not change.revision or not _access_of(change.revision).opens_to_everyone:
        return False
    if change.kind in _FROM_NOTHING:
        return True
    stable = deployment_of(change).stable_revision
    return stable is None or not _access_of(stable).opens_to_everyone


def consequence(change: ChangeRequest) -> str:
    """Return a sentence for approvers. Empty if no address is opened."""
    if change.revision is None or not is_opening(change):
        return ""
    return _access_of(change.revision).description


def _access_of(revision: Revision) -> AccessKind:
    return serving_spec.read_stored(revision.spec).network.access_kind
