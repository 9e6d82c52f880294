"""The tracking servers that the operator configured."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from deployments.imports.domain.errors import SourceRefused

SETTING: Final = "SLIPWAY_IMPORT_MLFLOW"


def choose(servers: Mapping[str, str], name: str) -> str:
    """Return the name of the server. Without a name, the only one. Raises SourceRefused."""
    if not servers:
        raise SourceRefused(
            "Imports from MLflow are switched off. A platform admin can name the tracking servers in "
            f"{SETTING}."
        )
    if name in servers:
        return name
    if name:
        raise SourceRefused(
            f"There is no MLflow server '{name[:40]}' here. Choose one of {', '.join(servers)}."
        )
    if len(servers) > 1:
        raise SourceRefused(f"Choose the MLflow server: {', '.join(servers)}.")
    return next(iter(servers))


def headers_of(credential: str) -> dict[str, str]:
    """Return the Authorization header for "user:password" (Basic) or a token (Bearer). No header without a
    credential.
    """
    if not credential:
        return {}
    if ":" in credential:
        return {"Authorization": f"Basic {base64.b64encode(credential.encode()).decode()}"}
    return {"Authorization": f"Bearer {credential}"}


def run_page(address: str, *, experiment_id: str, run_id: str) -> str:
    return f"{address}/#/experiments/{quote(experiment_id)}/runs/{quote(run_id)}"


def version_page(address: str, *, name: str, number: str) -> str:
    return f"{address}/#/models/{quote(name, safe='')}/versions/{number}"
