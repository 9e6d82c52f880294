"""The audit vocabulary of office hours."""

from __future__ import annotations

from portal.audit.actions import register

SET = register("office_hours.set", "set the")
OPENED = register("office_hours.opened", "opened the pool by the")
CLOSED = register("office_hours.closed", "closed the pool by the")
CHANGED = register("office_hours.changed_by_hand", "found a change by hand during the")
ENDED = register("office_hours.ended", "ended the")
