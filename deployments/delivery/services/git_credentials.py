"""Tokens for Git repositories: files in one mounted folder, read when needed."""

from __future__ import annotations

import re
from pathlib import Path

from django.conf import settings

from deployments.delivery.gateways.git import GitRefused

# No slash and no leading dot: nothing outside the folder can be named.
NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,99}")


def token_of(name: str) -> str:
    """Read a token, which is never stored, logged or shown. Empty without a name. Raises GitRefused if it cannot be
    read.
    """
    if not name:
        return ""
    folder = settings.SLIPWAY_GIT_CREDENTIALS_DIR
    if not folder or not NAME.fullmatch(name):
        raise GitRefused(
            f"There is no Git credential {name}: SLIPWAY_GIT_CREDENTIALS_DIR has none."
        )
    try:
        return (Path(folder) / name).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise GitRefused(f"The Git credential {name} cannot be read.") from error
