"""Models, versions, aliases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from slipway_client.types.base import Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias(Answer):
    name: str
    version: int
    is_protected: bool
    moved_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Model(Answer):
    id: int
    team: str
    name: str
    description: str
    task: str
    aliases: tuple[Alias, ...]
    created_by: str
    created_at: datetime

    def __str__(self) -> str:
        return f"{self.team}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check(Answer):
    """A check of a version's verification. `ok` is None while it is not known, or was not tried."""

    name: str
    ok: bool | None
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Attestation(Answer):
    """A signature or provenance of a version; `reason` says why it is not trusted."""

    id: int
    filename: str
    state: str
    reason: str
    is_provenance: bool
    signer: str | None = None
    identity: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor(Answer):
    """An input or output of a model. `dtype` is Triton's, for example FP32; a dimension of -1 is dynamic."""

    name: str
    dtype: str
    dims: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature(Answer):
    """Inputs and outputs; `max_batch_size` 0: no batching. `class_names` are those of a forest that
    classifies, in the order of its scores; empty where its file holds none.
    """

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    max_batch_size: int
    class_names: tuple[str, ...] = ()

    def name_scores(self, scores: Any) -> list[dict[str, float]]:
        """Name the scores of each row by its classes. A single score is that of the second of two classes.

        Raises ValueError for rows of another length.
        """
        rows = scores.tolist() if hasattr(scores, "tolist") else scores
        if len(self.class_names) == 2:
            rows = [[1 - row[0], row[0]] if len(row) == 1 else row for row in rows]
        return [dict(zip(self.class_names, row, strict=True)) for row in rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedVersion(Answer):
    """A version in a list, without its signature."""

    id: int
    team: str
    model: str
    number: int
    state: str
    state_reason: str
    format: str
    size_bytes: int | None
    declared_size_bytes: int
    sha256: str
    metadata: Mapping[str, Any]
    checks: tuple[Check, ...]
    aliases: tuple[str, ...]
    created_by: str
    created_at: datetime
    ready_at: datetime | None
    deadline_at: datetime | None

    def __str__(self) -> str:
        return f"{self.team}/{self.model}:{self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Version(ListedVersion):
    signature: Signature | None
    config_pbtxt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactFile(Answer):
    """A file of a version. `state` is waiting, sending, stored or verified; all parts but the last
    have `part_size` bytes.
    """

    path: str
    size_bytes: int
    part_size: int
    part_count: int
    sha256: str
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedUpload(Version):
    files: tuple[ArtifactFile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartUrl(Answer):
    """A URL for one PUT of exactly `size_bytes`, with these headers."""

    path: str
    number: int
    url: str
    size_bytes: int
    headers: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts(Answer):
    """The state of a file's upload in parts. `missing` are the numbers that still have to be sent."""

    part_size: int
    part_count: int
    missing: tuple[int, ...]
