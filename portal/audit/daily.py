"""The daily task of the audit chain: an anchor, its copy outside, and a verification of all of it."""

from __future__ import annotations

import logging

from portal.audit import anchors, verification
from portal.audit.anchor_store import AnchorStoreError
from portal.core import clock

logger = logging.getLogger(__name__)


def run() -> None:
    """Run the daily steps. Whatever failed is tried again by the next sweep."""
    anchors.make()
    try:
        anchors.store_copies()
    except AnchorStoreError as error:
        logger.warning("an audit anchor is not in the object store yet: %s", error)
        return
    last = verification.last_check()
    if last is None or last.at.date() < clock.now().date():
        check = verification.verify_and_record()
        if check.problem:
            logger.error("the audit trail is not intact: %s", check.problem)
