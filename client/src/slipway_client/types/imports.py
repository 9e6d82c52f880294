"""Imports, and what an MLflow server has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from slipway_client.types.base import Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Import(Answer):
    """Fills `version_id`. `facts` are what an MLflow server says beyond the version's metadata."""

    id: int
    version_id: int
    version: str
    team: str
    model: str
    number: int
    kind: str
    address: str
    server: str
    pin: str
    facts: Mapping[str, Any]
    state: str
    error: str
    files_done: int
    files_count: int
    copied_bytes: int
    total_bytes: int
    can_resume: bool
    created_by: str
    created_at: datetime
    ended_at: datetime | None

    def __str__(self) -> str:
        return f"import of {self.team}/{self.version} from {self.address}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MlflowServer(Answer):
    name: str
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MlflowModel(Answer):
    """A registered model of an MLflow server. `newest` is the number of the newest version; empty if there is none."""

    name: str
    description: str
    newest: str
    changed_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MlflowVersion(Answer):
    """Import it by its `address`."""

    name: str
    number: str
    address: str
    run_id: str
    description: str
    status: str
    aliases: tuple[str, ...]
    tags: Mapping[str, Any]
    created_at: datetime | None
