"""Responses of MLflow's REST API, parsed defensively.

GET /api/2.0/mlflow/registered-models/search, /alias    GET /api/2.0/mlflow/model-versions/search, /get
GET /api/2.0/mlflow/model-versions/get-download-uri     GET /api/2.0/mlflow/runs/get
GET /api/2.0/mlflow-artifacts/artifacts?path=           GET /api/2.0/mlflow-artifacts/artifacts/{path}
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, Generic, TypeVar

from deployments.imports.domain.errors import SourceRefused

Row = TypeVar("Row")
_NUMBER: Final = re.compile(r"[0-9]{1,9}")
_SIZE: Final = re.compile(r"[0-9]{1,18}")
_NOT_FINITE: Final = {"Infinity": math.inf, "-Infinity": -math.inf}
_LATEST_MILLISECONDS: Final = 10**14


@dataclass(frozen=True, slots=True)
class MlflowModel:
    """A registered model in a list. `newest` is the number of its newest version; empty if it has none."""

    name: str
    description: str
    newest: str
    changed_at: datetime | None


@dataclass(frozen=True, slots=True)
class MlflowVersion:
    name: str
    number: str
    run_id: str
    description: str
    status: str
    aliases: tuple[str, ...]
    tags: Mapping[str, str]
    created_at: datetime | None

    @property
    def is_ready(self) -> bool:
        return self.status in ("", "READY")


@dataclass(frozen=True, slots=True)
class Run:
    """A run. `dataset` is the name and digest of its first input."""

    run_id: str
    experiment_id: str
    name: str
    ended_at: datetime | None
    metrics: Mapping[str, float]
    parameters: Mapping[str, str]
    tags: Mapping[str, str]
    dataset: str = ""


@dataclass(frozen=True, slots=True)
class ArtifactEntry:
    name: str
    is_folder: bool
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    rows: tuple[Row, ...] = ()
    next_token: str = ""


def registered_models(answer: Any) -> Page[MlflowModel]:
    rows = tuple(
        MlflowModel(
            name=_text(row, "name"),
            description=_text(row, "description"),
            newest=_newest(row),
            changed_at=_moment(row.get("last_updated_timestamp")),
        )
        for row in _objects(answer, "registered_models")
    )
    return Page(rows, _text(_mapping(answer), "next_page_token"))


def aliases_of(answer: Any) -> dict[str, list[str]]:
    """Return the aliases of a registered model, keyed by the number of the version."""
    aliases: dict[str, list[str]] = {}
    for row in _objects(_mapping(_mapping(answer).get("registered_model")), "aliases"):
        aliases.setdefault(str(row.get("version")), []).append(_text(row, "alias"))
    return aliases


def model_versions(
    answer: Any, *, aliases: Mapping[str, Sequence[str]] | None = None
) -> Page[MlflowVersion]:
    versions = (_version(row) for row in _objects(answer, "model_versions"))
    rows = tuple(
        replace(version, aliases=tuple((aliases or {}).get(version.number, version.aliases)))
        for version in versions
    )
    return Page(rows, _text(_mapping(answer), "next_page_token"))


def model_version(answer: Any) -> MlflowVersion:
    return _version(_mapping(_mapping(answer).get("model_version")))


def artifact_uri(answer: Any) -> str:
    uri = _text(_mapping(answer), "artifact_uri")
    if not uri or not uri.isprintable():
        raise SourceRefused("MLflow does not say where the files of this version are.")
    return uri


def run(answer: Any) -> Run:
    row = _mapping(_mapping(answer).get("run"))
    info, data = _mapping(row.get("info")), _mapping(row.get("data"))
    return Run(
        run_id=_text(info, "run_id"),
        experiment_id=_text(info, "experiment_id"),
        name=_text(info, "run_name"),
        ended_at=_moment(info.get("end_time")),
        metrics={
            _text(item, "key"): _measured(item.get("value")) for item in _objects(data, "metrics")
        },
        parameters=_pairs(data, "params"),
        tags=_pairs(data, "tags"),
        dataset=_dataset(row),
    )


def artifact_entries(answer: Any) -> list[ArtifactEntry]:
    entries = []
    for row in _objects(answer, "files"):
        is_folder = row.get("is_dir") is True
        size = row.get("file_size", 0)
        # int64 is text in the JSON form of protobuf.
        size = int(size) if isinstance(size, str) and _SIZE.fullmatch(size) else size
        name = _text(row, "path").rpartition("/")[2]
        if not name or isinstance(size, bool) or not isinstance(size, int):
            raise SourceRefused("MLflow's list of artifacts has a file without name or size.")
        entries.append(ArtifactEntry(name, is_folder, 0 if is_folder else size))
    return entries


def _version(row: Mapping[str, Any]) -> MlflowVersion:
    number = row.get("version")
    number = str(number) if isinstance(number, int) else number
    if not isinstance(number, str) or not _NUMBER.fullmatch(number):
        raise SourceRefused("MLflow did not answer with a version of a registered model.")
    aliases = row.get("aliases")
    aliases = aliases if isinstance(aliases, list) else []
    return MlflowVersion(
        name=_text(row, "name"),
        number=number,
        run_id=_text(row, "run_id"),
        description=_text(row, "description"),
        status=_text(row, "status"),
        aliases=tuple(alias for alias in aliases if isinstance(alias, str)),
        tags=_pairs(row, "tags"),
        created_at=_moment(row.get("creation_timestamp")),
    )


def _newest(row: Mapping[str, Any]) -> str:
    numbers = [str(item.get("version", "")) for item in _objects(row, "latest_versions")]
    return max((n for n in numbers if _NUMBER.fullmatch(n)), key=int, default="")


def _dataset(row: Mapping[str, Any]) -> str:
    for item in _objects(_mapping(row.get("inputs")), "dataset_inputs"):
        dataset = _mapping(item.get("dataset"))
        name, digest = _text(dataset, "name"), _text(dataset, "digest")
        if name or digest:
            return f"{name}@{digest}".strip("@")
    return ""


def _measured(value: Any) -> float:
    """Read a metric. NaN for everything that is no number, so that its name is still reported. The JSON form of
    protobuf writes NaN and infinities as text.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    return _NOT_FINITE.get(value, math.nan) if isinstance(value, str) else math.nan


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _objects(value: Any, name: str) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of a list that the server leaves out when it is empty."""
    if not isinstance(value, Mapping):
        raise SourceRefused("MLflow did not answer with a JSON object.")
    rows = value.get(name, [])
    return (row for row in (rows if isinstance(rows, list) else []) if isinstance(row, Mapping))


def _pairs(row: Mapping[str, Any], name: str) -> dict[str, str]:
    return {_text(item, "key"): _text(item, "value") for item in _objects(row, name)}


def _text(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    return value.replace("\x00", "") if isinstance(value, str) else ""


def _moment(value: Any) -> datetime | None:
    """Convert milliseconds since 1970 to a time. None if the value is not such a number."""
    value = int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value
    if (
        isinstance(value, bool)
        or not isinstance(value, int)
        or not 0 < value < _LATEST_MILLISECONDS
    ):
        return None
    return datetime.fromtimestamp(value / 1000, UTC)
