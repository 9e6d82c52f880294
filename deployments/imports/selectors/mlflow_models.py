"""The models of the configured MLflow servers, for people who may import them.

Read live, with short time-outs: the credential is the installation's, so the answers are for people who may
upload into a team.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Final, TypeVar

from deployments.imports.domain.errors import SourceRefused, SourceUnavailable
from deployments.imports.domain.mlflow.answers import MlflowModel, MlflowVersion, Page
from deployments.imports.gateways import mlflow_server
from deployments.imports.gateways.mlflow_server import MlflowServer
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.core.errors import Forbidden, Invalid, NotFound, Unavailable

PER_PAGE: Final = 25
_READ_SECONDS: Final = 8
_LONGEST_TEXT: Final = 200
_LONGEST_TOKEN: Final = 2000
T = TypeVar("T")


def list_servers(*, actor: User) -> dict[str, str]:
    """Return the addresses of the servers by name. Empty for a person who may upload nowhere."""
    return mlflow_server.list_servers() if _may_import(actor) else {}


def search_models(*, actor: User, server: str, text: str = "", page: str = "") -> Page[MlflowModel]:
    """Search the registered models of a server. Raises Forbidden, NotFound for the server, Invalid for a text
    or page that MLflow refuses, and Unavailable with what to do.
    """
    return _read(
        actor,
        server,
        lambda mlflow: mlflow.search_models(
            text[:_LONGEST_TEXT], page=page[:_LONGEST_TOKEN], count=PER_PAGE
        ),
    )


def list_versions(*, actor: User, server: str, model: str, page: str = "") -> Page[MlflowVersion]:
    """List the versions of a model, newest first. Raises as `search_models`; NotFound also for the model."""
    return _read(
        actor,
        server,
        lambda mlflow: mlflow.list_versions(
            model[:_LONGEST_TEXT], page=page[:_LONGEST_TOKEN], count=PER_PAGE
        ),
    )


def _read(actor: User, server: str, read: Callable[[MlflowServer], T]) -> T:
    if not _may_import(actor):
        raise Forbidden(
            "Only members and leads of a team import models. Ask a team lead for access."
        )
    if server not in mlflow_server.list_servers():
        raise NotFound(f"There is no MLflow server {server[:40]} here.")
    mlflow = MlflowServer(server, read_seconds=_READ_SECONDS)
    try:
        return read(mlflow)
    except SourceRefused as error:
        if error.status == HTTPStatus.NOT_FOUND:
            raise NotFound(str(error)) from error
        if error.status == HTTPStatus.BAD_REQUEST:
            raise Invalid(str(error)) from error
        raise Unavailable(str(error)) from error
    except SourceUnavailable as error:
        raise Unavailable(f"{error} Try again, or ask a platform admin about {server}.") from error
    finally:
        mlflow.close()


def _may_import(actor: User) -> bool:
    teams = policy.visible_teams(actor)
    return any(policy.is_allowed(actor, Action.UPLOAD, team) for team in teams)
