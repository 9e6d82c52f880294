"""Who the token belongs to, and the clusters to deploy to."""

from __future__ import annotations

from dataclasses import dataclass

from slipway_client.types.base import Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class MyTeam(Answer):
    slug: str
    name: str
    role: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Me(Answer):
    username: str
    display_name: str
    is_platform_admin: bool
    teams: tuple[MyTeam, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster(Answer):
    id: int
    name: str
    kind: str
    region: str
    is_reachable: bool | None
