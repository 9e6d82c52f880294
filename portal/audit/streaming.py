"""Send chained events to a syslog server, each at least once: the position is stored after they arrived."""

from __future__ import annotations

import logging
import socket
from itertools import islice
from typing import Any, Final
from urllib.parse import urlsplit

from django.conf import settings

from portal.audit import export, syslog
from portal.audit.models import StreamPosition
from portal.core import clock

logger = logging.getLogger(__name__)
_BATCH: Final = 200


def run() -> int:
    """Send what the server lacks; a crash or a failure sends a batch again. Returns how many were sent."""
    address = settings.SLIPWAY_AUDIT_SYSLOG
    if not address:
        return 0
    target = syslog.parse(address, ca_file=settings.SLIPWAY_AUDIT_SYSLOG_CA)
    row, _ = StreamPosition.objects.get_or_create(target=address)
    after, sent = row.position, 0
    while records := list(islice(export.records(after=after), _BATCH)):
        try:
            syslog.send(target, map(_message, records))
        except syslog.SyslogError as error:
            logger.warning("audit events were not sent: %s", error)
            StreamPosition.objects.filter(pk=row.pk).update(error=str(error))
            return sent
        reached = records[-1]["position"]
        moved = StreamPosition.objects.filter(pk=row.pk, position=after)
        if not moved.update(position=reached, sent_at=clock.now(), error=""):
            # Another worker sends as well.
            return sent
        after, sent = reached, sent + len(records)
    return sent


def status() -> StreamPosition | None:
    """Return the position of the configured server. None if there is none, or nothing was tried yet."""
    address = settings.SLIPWAY_AUDIT_SYSLOG
    return StreamPosition.objects.filter(target=address).first() if address else None


def _message(record: dict[str, Any]) -> syslog.SyslogMessage:
    event = record["event"]
    return syslog.SyslogMessage(
        at=event["at"] if event else "-",
        sender=urlsplit(settings.SLIPWAY_PUBLIC_URL).hostname or socket.gethostname() or "-",
        kind=event["action"] if event else "",
        text=export.line(record),
    )
