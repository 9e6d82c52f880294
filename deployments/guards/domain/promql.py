"""Guards that run a team's own query on the cluster's Prometheus.

    {"metric": "promql", "name": "Checkout errors", "query": "…", "max": 0.02, "breaches": 3}

The result is one number: a scalar, or a vector of one sample. Its value is not a counter, so its
variance is unknown and there is no sequential test: a guard fails after so many consecutive
breaches, and passes after as many consecutive readings within the limit. No response, an empty one
and NaN are not readings: they end the sequence and are "not enough data".
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Final, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    ValidationInfo,
    field_validator,
    model_validator,
)

from deployments.guards.domain.evidence import GuardResult, Verdict
from deployments.guards.domain.kinds.promql import KIND, QueryKind
from fleet.clusters.domain.prometheus import PrometheusError, QueryResult
from portal.core.definitions.figures import format_figure

BREACHES: Final = 3
# What may stand in a query, and what it becomes.
PLACEHOLDERS: Final[Mapping[str, str]] = {
    "namespace": "the team's namespace",
    "deployment": "the deployment's name",
    "model": "the model's name in Triton",
    "workload": "the candidate's workload, such as detector-r3",
    "stable_workload": "the stable revision's workload",
    "window": "the time since the step began, a day at most",
}
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _.,%/()-]{0,39}")
_PLACEHOLDER: Final = re.compile(r"\$([A-Za-z_]\w*)|\$\{([A-Za-z_]\w*)\}")
_VALUE: Final = re.compile(r"[a-z0-9]([-a-z0-9_.]{0,200}[a-z0-9])?", re.IGNORECASE)
_LONGEST_QUERY: Final = 1000
_MOST: Final = 1e15
_DAY: Final = 24 * 3600


class QueryGuard(BaseModel):
    """A query's value must be at most `max`, at least `min`, or between both, in its own unit."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, str_strip_whitespace=True
    )

    metric: Literal["promql"] = "promql"
    name: str = Field(max_length=40, description="Unique name of a promql guard.")
    query: str = Field(
        max_length=_LONGEST_QUERY,
        description="of a promql guard: returns one number; may contain "
        f"{', '.join('$' + name for name in PLACEHOLDERS)}",
    )
    max: float | None = Field(strict=True, default=None, ge=-_MOST, le=_MOST)
    min: float | None = Field(
        strict=True,
        default=None,
        ge=-_MOST,
        le=_MOST,
        description="Lower limit of a promql guard, with or without max.",
    )
    # Null: the default.
    breaches: StrictInt = Field(
        default=BREACHES,
        ge=1,
        le=20,
        description="Consecutive breaches before a promql guard fails. Default: 3.",
    )
    dry_run: StrictBool = Field(
        title="Dry run",
        default=False,
        description="judged and shown, but neither aborts the rollout nor blocks promotion",
    )

    @field_validator("name")
    @classmethod
    def _check_name(cls, name: str) -> str:
        if not _NAME.fullmatch(name):
            raise ValueError(
                "A promql guard needs a name: at most 40 letters, digits, spaces and _.,%/()-"
            )
        return name

    @field_validator("query")
    @classmethod
    def _check_query(cls, query: str, info: ValidationInfo) -> str:
        name = info.data.get("name", KIND.name)
        if not query or not query.replace("\n", " ").isprintable():
            raise ValueError(f"{name}: enter a query of printable characters.")
        unknown = sorted(set(_placeholders_in(query)) - set(PLACEHOLDERS))
        if unknown:
            known = ", ".join(f"${placeholder}" for placeholder in PLACEHOLDERS)
            raise ValueError(f"{name}: ${unknown[0]} is not a placeholder. Use one of {known}.")
        return query

    @field_validator("breaches", mode="before")
    @classmethod
    def _default_breaches(cls, value: object) -> object:
        return BREACHES if value is None else value

    @model_validator(mode="after")
    def _check_limits(self) -> Self:
        if self.max is None and self.min is None:
            raise ValueError(f"{self.name}: give a max, a min or both.")
        if self.max is not None and self.min is not None and self.min > self.max:
            raise ValueError(f"{self.name}: min is above max.")
        return self

    @property
    def kind(self) -> QueryKind:
        return KIND

    @property
    def label(self) -> str:
        return self.name

    @property
    def source(self) -> str:
        return KIND.source

    @property
    def tests(self) -> int:
        """The number of sequential tests. A query has none, so it spends nothing of alpha."""
        return 0

    def is_breach(self, value: float) -> bool:
        is_high = self.max is not None and value > self.max
        return is_high or (self.min is not None and value < self.min)

    @property
    def limit_text(self) -> str:
        low = [] if self.min is None else [f"≥ {self.min:g}"]
        return " and ".join([*low, *([] if self.max is None else [f"≤ {self.max:g}"])])

    def to_json(self) -> dict[str, Any]:
        return self.model_dump()


@dataclass(frozen=True, slots=True)
class QueryTarget:
    """The values of a query's placeholders."""

    namespace: str
    deployment: str
    model: str
    workload: str
    stable_workload: str
    step_seconds: float


@dataclass(frozen=True, slots=True)
class Sides:
    """The values of placeholders for each revision."""

    stable: QueryTarget
    candidate: QueryTarget

    def get_side(self, side: str) -> QueryTarget:
        return self.stable if side == "stable" else self.candidate


@dataclass(frozen=True, slots=True)
class Watched:
    """The readings of one guard's query at this step. `problem` says why the last one gave no value."""

    query: str = ""
    value: float | None = None
    at: datetime | None = None
    problem: str = ""
    readings: int = 0
    breaches: int = 0
    good: int = 0
    has_failed: bool = False

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "at": self.at.isoformat() if self.at else None}


def watched_from_json(stored: Mapping[str, Any] | None) -> Watched:
    if not stored:
        return Watched()
    at = stored["at"]
    return Watched(**{**stored, "at": datetime.fromisoformat(at) if at else None})


def fill(query: str, target: QueryTarget) -> str:
    """Replace placeholders by names. They are names of Kubernetes, so they can end neither
    a string nor a matcher; anything else is refused.
    """
    values = {
        "namespace": target.namespace,
        "deployment": target.deployment,
        "model": target.model,
        "workload": target.workload,
        "stable_workload": target.stable_workload,
        "window": f"{max(1, min(_DAY, int(target.step_seconds)))}s",
    }
    for name, value in values.items():
        if not _VALUE.fullmatch(value):
            raise ValueError(f"{name} cannot stand in a query: {value!r}")
    return _PLACEHOLDER.sub(lambda match: values[match[1] or match[2]], query)


def number_of(reading: QueryResult | PrometheusError) -> tuple[float | None, str]:
    """Return the one number of the reading, or why there is none."""
    if isinstance(reading, PrometheusError):
        return None, reading.message
    if reading.warnings:
        return None, f"Prometheus warns that data may be missing: {reading.warnings[0]}"
    if not reading.samples:
        return None, "Prometheus has no series for the query"
    if len(reading.samples) > 1:
        return None, f"the query gives {len(reading.samples)} series, not one number"
    value = reading.samples[0].value
    if not math.isfinite(value):
        return None, f"the value is {value:g}: mostly a division by 0 requests"
    return value, ""


def take(
    before: Watched,
    guard: QueryGuard,
    reading: QueryResult | PrometheusError,
    *,
    query: str,
    at: datetime,
) -> Watched:
    """Update the state by one reading. A failure stays for the step."""
    value, problem = number_of(reading)
    after = replace(before, query=query, value=value, at=at, problem=problem)
    if value is None:
        return replace(after, breaches=0, good=0)
    is_breach = guard.is_breach(value)
    breaches = before.breaches + 1 if is_breach else 0
    return replace(
        after,
        readings=before.readings + 1,
        breaches=breaches,
        good=0 if is_breach else before.good + 1,
        has_failed=before.has_failed or breaches >= guard.breaches,
    )


def judge(guard: QueryGuard, watched: Watched, *, unknown: str = "") -> GuardResult:
    """Judge a query's readings. `unknown` says why there is no current value."""
    verdict, message = _verdict(guard, watched, unknown)
    return GuardResult(
        guard=guard.name,
        # There is one number, and none of stable beside it.
        stable="\N{EN DASH}",
        candidate="" if watched.value is None or unknown else format_figure(watched.value, 6),
        limit=guard.limit_text,
        n=None,
        verdict=verdict,
        message=message,
        source=KIND.source,
        statistic=f"fails after {guard.breaches} consecutive breaches; a query's value is not a counter, so "
        "there is no sequential test and no bound on false alarms",
        query=watched.query or guard.query,
        measured_at=f"{watched.at:%H:%M:%S} UTC" if watched.at else "",
    )


def _verdict(guard: QueryGuard, watched: Watched, unknown: str) -> tuple[Verdict, str]:
    missing = unknown or watched.problem
    if missing or watched.value is None:
        return Verdict.NOT_ENOUGH, missing or "Prometheus was not queried at this step yet"
    limit = guard.limit_text
    if watched.has_failed:
        now = f"it is {format_figure(watched.value, 6)} now"
        message = f"outside {limit} in {guard.breaches} readings in a row or more; {now}"
        return Verdict.FAILED, message
    if watched.breaches:
        message = f"outside {limit}: {watched.breaches} of {guard.breaches} breaches in a row"
        return Verdict.NOT_ENOUGH, message
    if watched.good < guard.breaches:
        message = f"within the limit in {watched.good} of {guard.breaches} readings in a row so far"
        return Verdict.NOT_ENOUGH, message
    return Verdict.PASSED, f"within the limit in the last {watched.good:,} readings"


def _placeholders_in(query: str) -> list[str]:
    return [match[1] or match[2] for match in _PLACEHOLDER.finditer(query)]
