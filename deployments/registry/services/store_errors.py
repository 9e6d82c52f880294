"""Translate errors of the object store for users."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from deployments.registry.gateways.object_store import StoreRefused, StoreUnreachable
from portal.core.errors import Unavailable


@contextmanager
def translate_errors() -> Iterator[None]:
    """Raise Unavailable for an unreachable or misconfigured store. Other errors pass through."""
    try:
        yield
    except StoreUnreachable as error:
        raise Unavailable(
            "Object storage is not responding. Nothing is lost; try again in a minute.",
            code="store_unavailable",
        ) from error
    except StoreRefused as error:
        raise Unavailable(
            "Object storage denied access to the portal. Ask a platform admin to check the "
            "bucket and its credentials.",
            code="store_refused",
        ) from error
