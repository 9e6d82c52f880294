"""Note what the portal itself asks of a revision, so that nobody takes it for a user's request."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from deployments.models import OwnRequest, Revision
from portal.core import clock

# Longer than any interval that an analysis looks back over.
_KEPT: Final = timedelta(hours=1)


def note(revision: Revision) -> None:
    """One that was answered, now. Old ones go, so a revision never holds more than an hour's."""
    at = clock.now()
    OwnRequest.objects.filter(revision=revision, at__lt=at - _KEPT).delete()
    OwnRequest.objects.create(revision=revision, at=at)
