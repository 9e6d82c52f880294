"""System checks: report a misconfiguration at start, with the fix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register


@register()
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
