"""Run the checks. One that breaks becomes a line of its own and hides no other."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from portal.accounts import policy
from portal.accounts.policy import Actor
from portal.doctor import registry
from portal.doctor.checks import (  # noqa: F401  each registers its checks
    audit_trail,
    broker,
    bucket,
    clusters,
    configuration,
    database,
    outside,
    token_issuers,
    upkeep,
    workers,
)
from portal.doctor.lines import Line, Status, report_failed
from portal.doctor.registry import Check
from portal.doctor.secrets import redact

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Result:
    area: str
    line: Line


def run(*, actor: Actor, areas: Sequence[str] = ()) -> Iterator[Result]:
    """Yield the results as they come, only of `areas` if some are given. Secrets are taken out of them."""
    policy.require_platform_admin(actor)
    chosen = [check for check in registry.all_checks() if not areas or check.area in areas]
    return (Result(check.area, _redacted(line)) for check in chosen for line in _lines(check))


def is_healthy(results: Sequence[Result]) -> bool:
    return all(result.line.status is not Status.FAILED for result in results)


def _lines(check: Check) -> list[Line]:
    """Run a check and return its lines. Each check handles its own errors; any other is caught here, as at the
    border of a task.
    """
    lines: list[Line] = []
    try:
        lines.extend(check.run())
    except Exception as error:
        logger.debug("the check %s ended early", check.name, exc_info=error)
        lines.append(report_failed(check.name, f"{type(error).__name__}: {error}", check.fix))
    return lines


def _redacted(line: Line) -> Line:
    detail = " ".join(redact(line.detail).split())
    return replace(line, name=redact(line.name), detail=detail, fix=redact(line.fix))
