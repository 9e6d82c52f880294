"""Who the token belongs to, and the clusters to deploy to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from slipway_client.types.base import Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class MyTeam(Answer):
    slug: str
    name: str
    role: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant(Answer):
    """The token of the request: what it may do, and until when."""

    name: str
    scopes: tuple[str, ...]
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Me(Answer):
    username: str
    display_name: str
    is_platform_admin: bool
    is_service_account: bool
    teams: tuple[MyTeam, ...]
    token: Grant | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster(Answer):
    id: int
    name: str
    kind: str
    region: str
    is_reachable: bool | None
