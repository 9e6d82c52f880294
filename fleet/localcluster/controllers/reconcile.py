"""Reconcile passes: a fault of one controller or object must not stop the others."""

import logging
import threading
from collections.abc import Callable, Iterable, Sequence

from fleet.localcluster.client.cluster_api import ClusterApi
from fleet.localcluster.errors import ApiError, JsonObject

logger = logging.getLogger(__name__)

# Some passes are due without a change: deadlines, and clusters that Envoy has not loaded yet.
_PERIOD_SECONDS = 0.5
# What a spec of an unexpected shape raises; any other error is a fault of the controller.
_MALFORMED = (LookupError, TypeError, ValueError, AttributeError, OSError)


def run_until(
    stopping: threading.Event, api: ClusterApi, controllers: Sequence[Callable[[], None]]
) -> None:
    """Run the controllers after each change and twice a second."""
    while not stopping.is_set():
        revision = api.revision
        for reconcile in controllers:
            run_once(reconcile)
        api.wait(revision, _PERIOD_SECONDS)


def run_once(reconcile: Callable[[], None]) -> None:
    """One pass; a failed one is logged, and the next pass retries."""
    try:
        reconcile()
    except (ApiError, *_MALFORMED):
        logger.exception("a controller failed")


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
