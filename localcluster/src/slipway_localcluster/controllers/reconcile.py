"""Reconcile passes: a fault of one controller or object must not stop the others."""

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from time import monotonic

from slipway_localcluster.client.cluster_api import ClusterApi
from slipway_localcluster.errors import ApiError, JsonObject

logger = logging.getLogger(__name__)

# Some passes are due without a change: deadlines, and clusters that Envoy has not loaded yet. Those of seconds come soon
# after a change; long after it a pass may be later, because it reads all objects again.
_PERIOD_SECONDS = 0.5
_CALM_PERIOD_SECONDS = 2.0
_CALM_AFTER_SECONDS = 15.0
# What a spec of an unexpected shape raises; any other error is a fault of the controller.
_MALFORMED = (LookupError, TypeError, ValueError, AttributeError, OSError)


def run_until(
    stopping: threading.Event,
    api: ClusterApi,
    controllers: Sequence[Callable[[], None]],
    now: Callable[[], float] = monotonic,
) -> None:
    """Run the controllers after each change, twice a second for 15 seconds, and then every other second."""
    changed_at = now()
    while not stopping.is_set():
        revision, began = api.revision, now()
        for reconcile in controllers:
            run_once(reconcile)
        while not stopping.is_set():
            # In short waits, so that it stops soon.
            if api.wait(revision, _PERIOD_SECONDS) > revision:
                changed_at = now()
                break
            is_calm = now() - changed_at >= _CALM_AFTER_SECONDS
            if not is_calm or now() - began >= _CALM_PERIOD_SECONDS:
                break


def run_once(reconcile: Callable[[], None]) -> None:
    """Make one pass. A failed one is logged, and the next pass retries."""
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
