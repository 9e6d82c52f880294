"""Isolation of objects in a reconcile pass: one that fails must not keep the others waiting."""

import logging
from collections.abc import Callable, Iterable

from fleet.localcluster.errors import ApiError, JsonObject

logger = logging.getLogger(__name__)

# What a spec of an unexpected shape raises; any other error is a fault of the controller.
_MALFORMED = (LookupError, TypeError, ValueError, AttributeError, OSError)


def reconcile_each(objects: Iterable[JsonObject], reconcile: Callable[[JsonObject], None]) -> None:
    """Reconcile every object; a refused or malformed one is left to the next pass."""
    for item in objects:
        name = f"{item['kind']} {item['metadata'].get('namespace', '')}/{item['metadata']['name']}"
        try:
            reconcile(item)
        except ApiError as error:
            logger.debug("%s: %s; the next pass retries", name, error.message)
        except _MALFORMED:
            logger.exception("%s cannot be reconciled", name)
