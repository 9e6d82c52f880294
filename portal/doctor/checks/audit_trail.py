"""The audit trail: what the portal's role may do to it, and whether its chain is intact."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from django.apps import apps
from django.conf import settings
from django.db import connection

from portal.audit import sealing, verification
from portal.audit.models import AnchorCopy, AuditEvent, ChainAnchor, StreamPosition
from portal.core import clock
from portal.doctor.checks.database import row
from portal.doctor.lines import Line, Status, note, ok, report_failed, report_unknown
from portal.doctor.registry import check

_AREA: Final = "audit trail"
_READ: Final = "Fix the database first."
_ROLES: Final = "Run migrations as slipway_owner and the portal as slipway: deploy/postgres-roles.sh makes both roles."
# Three sweeps of audit.seal and of audit.anchor.
_TRIGGERS: Final = 2
_LATEST_SEAL: Final = timedelta(minutes=5)


@check(_AREA, "Database role", fix=_READ)
def role() -> Iterator[Line]:
    if connection.vendor != "postgresql":
        return
    name, is_super = row(
        "SELECT rolname, rolsuper OR rolreplication OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
    )
    if is_super:
        yield report_failed(
            "Database role", f"{name} is a superuser, so no trigger stops it", _ROLES
        )
        return
    for table in _tables():
        owns, may_empty = row(
            f"SELECT pg_has_role(current_user, relowner, 'MEMBER'), "  # noqa: S608  names of our own tables
            f"has_table_privilege(oid, 'TRUNCATE') FROM pg_class WHERE oid = '{table}'::regclass"
        )
        if owns:
            yield report_failed(
                "Database role", f"{name} owns {table} and can drop its triggers", _ROLES
            )
            return
        if may_empty:
            fix = f"As the owner: REVOKE TRUNCATE ON {table} FROM {name};"
            yield report_failed("Database role", f"{name} may TRUNCATE {table}", fix)
            return
    yield ok("Database role", f"{name} owns no audit table and may empty none")


@check(_AREA, "Triggers", fix=_READ)
def triggers() -> Iterator[Line]:
    if connection.vendor != "postgresql":
        return
    for table in _final_tables():
        (active,) = row(
            "SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal AND tgenabled IN ('O', 'A') "  # noqa: S608  as above
            f"AND tgname IN ('audit_events_are_final', 'audit_events_are_kept') AND tgrelid = '{table}'::regclass"
        )
        if active != _TRIGGERS:
            yield report_failed(
                "Triggers",
                f"no trigger protects {table} from changes",
                f"As the owner: ALTER TABLE {table} ENABLE TRIGGER ALL; then find out who switched it off.",
            )
            return
    yield ok("Triggers", "UPDATE, DELETE and TRUNCATE are refused")


@check(_AREA, "Chain", fix="Run `manage.py audit_verify`.")
def chain() -> Iterator[Line]:
    """Check the chain in the database. The daily task and `audit_verify` compare the anchors in the bucket."""
    report = verification.verify(with_store=False)
    if report.problem:
        yield report_failed(
            "Chain", str(report.problem), "See the table in docs/audit.md, section Verifying."
        )
        return
    yield ok("Chain", f"intact: {report.position} events, {report.anchors} anchors agree")
    oldest = sealing.list_unsealed().order_by("at").values_list("at", flat=True).first()
    if oldest and clock.now() - oldest > _LATEST_SEAL:
        detail = f"{report.unsealed} events wait since {oldest:%Y-%m-%d %H:%M} UTC"
        yield report_failed(
            "Sealing", detail, "Start beat and a worker of the queue notifications."
        )


@check(_AREA, "Anchors", fix=_READ)
def anchors() -> Iterator[Line]:
    newest = ChainAnchor.objects.order_by("-day").first()
    if newest is None:
        if AuditEvent.objects.exists():
            fix = "The first is made within ten minutes by beat and a worker of the queue notifications."
            yield report_unknown("Anchors", "none yet", fix)
        return
    today = clock.now().date()
    if newest.day < today - timedelta(days=1):
        fix = "Start beat and a worker of the queue notifications."
        yield report_failed("Anchors", f"the last one is of {newest.day}", fix)
    elif not AnchorCopy.objects.filter(anchor=newest).exists():
        fix = "Check the bucket and the role: it needs s3:PutObject on audit/anchors/*."
        yield report_failed("Anchors", f"the anchor of {newest.day} is not in the bucket yet", fix)
    else:
        yield _lock_of(newest)


@check(_AREA, "Stream", fix=_READ)
def stream() -> Iterator[Line]:
    if not settings.SLIPWAY_AUDIT_SYSLOG:
        fix = "Set SLIPWAY_AUDIT_SYSLOG to your SIEM, so that a copy of the trail is out of the portal's reach."
        yield note("Stream", "events are not streamed to a SIEM", fix)
        return
    for position in StreamPosition.objects.exclude(error=""):
        fix = "Check SLIPWAY_AUDIT_SYSLOG, its certificate and the network path to it. Nothing is lost meanwhile."
        yield report_failed("Stream", f"{position.target}: {position.error}", fix)


def _lock_of(anchor: ChainAnchor) -> Line:
    until = AnchorCopy.objects.get(anchor=anchor).locked_until
    if until is None:
        detail = f"the anchor of {anchor.day} is in the bucket without Object Lock"
        return Line("Anchors", Status.NOTE, detail, "Use a bucket with Object Lock.")
    return ok("Anchors", f"the anchor of {anchor.day} is locked until {until:%Y-%m-%d}")


def _tables() -> list[str]:
    return [model._meta.db_table for model in apps.get_app_config("audit").get_models()]


def _final_tables() -> list[str]:
    return [table for table in _tables() if table != StreamPosition._meta.db_table]
