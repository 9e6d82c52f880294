"""The database: reachable, current, with a role that cannot undo the audit trail."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, Final

from django.core.management import call_command
from django.db import connection

from portal.core import clock
from portal.core.schema import history as migration_history
from portal.doctor.lines import Line, note, ok, report_failed
from portal.doctor.registry import check

_AREA: Final = "database"
_OLDEST: Final = 15
_MAX_CLOCK_SECONDS: Final = 5
_REACH: Final = (
    "Check host, port, user and password of SLIPWAY_DATABASE_URL, and the security group between the "
    "portal and the server."
)


def row(query: str) -> tuple[Any, ...]:
    with connection.cursor() as cursor:
        cursor.execute(query)
        return tuple(cursor.fetchone())


@check(_AREA, "Server", fix=_REACH)
def server() -> Iterator[Line]:
    if connection.vendor != "postgresql":
        yield report_failed(
            "Server",
            "SQLite: one writer at a time, and the audit trail can be changed",
            "Set SLIPWAY_DATABASE_URL to PostgreSQL.",
        )
        return
    (version,) = row("SHOW server_version_num")
    major = int(version) // 10_000
    if major < _OLDEST:
        yield report_failed("Server", f"PostgreSQL {major}", f"Use PostgreSQL {_OLDEST} or newer.")
    else:
        yield ok("Server", f"PostgreSQL {major} responds")


@check(_AREA, "Encryption", fix=_REACH)
def encryption() -> Iterator[Line]:
    if connection.vendor != "postgresql":
        return
    host, is_encrypted = row(
        "SELECT coalesce(host(inet_client_addr()), ''), "
        "coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false)"
    )
    options = connection.settings_dict.get("OPTIONS") or {}
    if not host:
        yield ok("Encryption", "not needed: the server is on this machine")
    elif not is_encrypted:
        yield report_failed(
            "Encryption",
            "rows and the password travel unencrypted",
            "Add ?sslmode=verify-full&sslrootcert=/path/to/ca.pem to SLIPWAY_DATABASE_URL.",
        )
    elif options.get("sslmode") not in ("verify-full", "verify-ca"):
        yield note(
            "Encryption",
            "TLS, but the certificate of the server is not checked",
            "Add ?sslmode=verify-full&sslrootcert=/path/to/ca.pem to SLIPWAY_DATABASE_URL.",
        )
    else:
        yield ok("Encryption", "TLS with the certificate checked")


@check(_AREA, "Migrations", fix=_REACH)
def migrations() -> Iterator[Line]:
    files = migration_history.read_files()
    recorded = migration_history.read_recorded(connection)
    pending = _pending()
    if pending:
        yield report_failed(
            "Migrations",
            f"{len(pending)} not applied, the first is {pending[0]}",
            "Run `manage.py migrate` as the owner of the tables, with the image that runs.",
        )
        return
    unknown = sorted(recorded - set(files))
    if unknown:
        app, name = unknown[-1]
        yield note(
            "Migrations",
            f"the database is newer than this image: it has {app}.{name}",
            "Finish the upgrade, or restore the backup from before it.",
        )
    else:
        yield ok("Migrations", "all applied")


def _pending() -> list[str]:
    """List the migrations to apply, in their order."""
    listed = io.StringIO()
    call_command("showmigrations", format="plan", stdout=listed, no_color=True)
    lines = listed.getvalue().splitlines()
    return [line.split()[2] for line in lines if line.startswith("[ ]")]


@check(_AREA, "Clock", fix=_REACH)
def clocks() -> Iterator[Line]:
    if connection.vendor != "postgresql":
        return
    (there,) = row("SELECT clock_timestamp()")
    seconds = (there - clock.now()).total_seconds()
    if abs(seconds) > _MAX_CLOCK_SECONDS:
        yield report_failed(
            "Clock",
            f"the database is {abs(seconds):.0f} s {'ahead of' if seconds > 0 else 'behind'} the portal",
            "Let both follow the same time server: leases, one-time codes and the audit chain compare times.",
        )
    else:
        yield ok("Clock", f"within {_MAX_CLOCK_SECONDS} s of the portal's")


@check(_AREA, "Search", fix=_REACH)
def search_extension() -> Iterator[Line]:
    if connection.vendor != "postgresql":
        return
    (is_there,) = row("SELECT exists(SELECT 1 FROM pg_extension WHERE extname = 'pg_trgm')")
    if not is_there:
        yield note(
            "Search",
            "pg_trgm is not installed: searching for parts of words reads all rows",
            "As an administrator of the database: CREATE EXTENSION pg_trgm; as the owner of the tables: "
            "CREATE INDEX version_trigrams ON deployments_versiondocument USING gin (text gin_trgm_ops);",
        )
