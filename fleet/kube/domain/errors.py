"""Errors of the Kubernetes API, with the message that the cluster gave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FieldCause:
    """One reason for a refusal: which field of the object, and what is wrong with it."""

    field: str
    message: str
    reason: str = ""


class ClusterError(Exception):
    def __init__(self, message: str, *, causes: Sequence[FieldCause] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.causes = tuple(causes)


class ObjectNotFound(ClusterError):
    """There is no such object, or the cluster does not serve its kind."""


class ObjectConflict(ClusterError):
    """Another field manager owns a field (server-side apply), or the object changed meanwhile."""


class ObjectInvalid(ClusterError):
    """The cluster refuses the object as it is; sending it again cannot help."""


class NotOwned(ClusterError):
    """Another installation of Slipway wrote the object or its namespace, so nothing was sent."""


class InstallationSuspended(ClusterError):
    """The database is a copy: nothing is written until an admin decides by `manage.py adopt`."""


class Refused(ClusterError):
    """401 or 403: the portal's credentials are not accepted or lack the permission."""


class NotAllowed(Refused):
    """403: the portal is signed in, but its role lacks this permission."""


class Unreachable(ClusterError):
    """No response, or a 5xx status. A retry can succeed."""


class NotAttempted(ClusterError):
    """Not sent, because the cluster had just failed on other requests."""


class Throttled(ClusterError):
    """429: retry after `retry_after_seconds`."""

    def __init__(
        self, message: str, *, retry_after_seconds: float, causes: Sequence[FieldCause] = ()
    ) -> None:
        super().__init__(message, causes=causes)
        self.retry_after_seconds = retry_after_seconds


class WatchExpired(ClusterError):
    """410: the resource version is too old to continue from; list again."""


def describe_error(error: ClusterError) -> str:
    """Return the message with the fields that the cluster names as causes."""
    causes = "; ".join(
        f"{cause.field}: {cause.message}" if cause.field else cause.message
        for cause in error.causes
    )
    return (
        f"{error.message} ({causes})" if causes and causes not in error.message else error.message
    )
