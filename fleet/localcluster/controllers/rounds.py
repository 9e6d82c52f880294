"""One object that cannot be reconciled must not keep the others waiting."""

import logging
from collections.abc import Callable, Iterable

from fleet.localcluster.errors import ApiError, JsonObject

logger = logging.getLogger(__name__)

# What a spec of an unexpected shape raises; anything else is a fault of ours and may be loud.
_MALFORMED = (LookupError, TypeError, ValueError, AttributeError, OSError)


def for_each(objects: Iterable[JsonObject], act: Callable[[JsonObject], None]) -> None:
    """Act on every object; a refused or malformed one is left to the next round."""
    for item in objects:
        name = f"{item['kind']} {item['metadata'].get('namespace', '')}/{item['metadata']['name']}"
        try:
            act(item)
        except ApiError as error:
            logger.debug("%s: %s; the next round tries again", name, error.message)
        except _MALFORMED:
            logger.exception("%s cannot be reconciled", name)
