"""System checks: report a misconfiguration at start, with the fix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register
from django.db import connections

from portal.audit import syslog


@register("slipway")
def secret_key_is_long(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    if len(settings.SECRET_KEY) >= 32:
        return []
    return [
        Error(
            "SLIPWAY_SECRET_KEY is shorter than 32 characters.",
            hint="Set it to the output of `python -c 'import secrets; print(secrets.token_urlsafe(50))'`.",
            id="slipway.E001",
        )
    ]


@register("slipway")
def audit_syslog_is_an_address(
    app_configs: Sequence[Any] | None, **kwargs: Any
) -> list[CheckMessage]:
    if not settings.SLIPWAY_AUDIT_SYSLOG:
        return []
    try:
        syslog.parse(settings.SLIPWAY_AUDIT_SYSLOG)
    except syslog.BadAddress as error:
        return [Error(str(error), id="slipway.E002")]
    return []


@register(Tags.database)
def database_is_of_a_release(
    app_configs: Sequence[Any] | None, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """`migrate` runs it before it begins."""
    from portal.core.schema import history  # noqa: PLC0415  only `migrate` needs it

    files = history.read_files() if databases else {}
    unreleased = [
        f"{app}.{name}"
        for alias in databases or ()
        for app, name in history.list_unreleased(files, history.read_recorded(connections[alias]))
    ]
    if not unreleased:
        return []
    return [
        Error(
            f"The database was made between two releases: it has {unreleased[0]}, which no release has.",
            hint="Migrate a database of the release before, or begin with an empty one.",
            id="slipway.E003",
        )
    ]
