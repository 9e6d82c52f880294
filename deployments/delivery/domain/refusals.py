"""Describes a refusal of the API server in one sentence."""

from __future__ import annotations

from typing import Final

from fleet.kube.domain.errors import (
    ClusterError,
    InstallationSuspended,
    NotAllowed,
    NotOwned,
    ObjectConflict,
    ObjectInvalid,
    ObjectNotFound,
    Refused,
    Throttled,
    Unreachable,
    describe_error,
)

# The answer is about what was sent: sending the same again cannot help before somebody changes something.
REFUSALS: Final = (
    ObjectInvalid,
    ObjectConflict,
    ObjectNotFound,
    NotAllowed,
    NotOwned,
    InstallationSuspended,
)
# Refused by the portal itself, with a sentence that says all.
_OWN: Final = (NotOwned, InstallationSuspended)
NOT_ANSWERING: Final = "Not known: the cluster does not answer"


def describe_refusal(error: ClusterError, *, what: str) -> str:
    """Say that the cluster rejected something, and why."""
    if isinstance(error, _OWN):
        return error.message
    return f"the cluster rejected {what}: {describe_error(error)}"


def describe_failure(error: ClusterError) -> str:
    """Say why a pass ended early: only a cluster that does not answer leaves the state unknown."""
    detail = describe_error(error)
    if isinstance(error, Unreachable):
        return f"{NOT_ANSWERING} ({detail})."
    if isinstance(error, _OWN):
        return detail
    if isinstance(error, Throttled):
        return f"The cluster throttles requests. Slipway tries again soon: {detail}"
    if isinstance(error, NotAllowed):
        return f"The cluster does not permit it: {detail}"
    if isinstance(error, Refused):
        return f"The cluster does not accept the portal's credentials: {detail}"
    return f"The cluster rejected it: {detail}"
