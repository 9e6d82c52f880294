"""Run the steps of an examination that read the uploaded file, in the sandbox.

The row counts deaths before each attempt, so that the death of the whole worker counts as well. The
second death fails the version.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from django.db.models import F

from deployments.models import ModelVersion
from deployments.registry.gateways import sandbox
from deployments.registry.gateways.sandbox import Broken, Died, Finished, Outcome, Refused
from deployments.registry.gateways.sandbox_artifact import Access
from deployments.registry.services.examination.checklist import Checklist

logger = logging.getLogger(__name__)

MAX_DEATHS: Final = 2
_KILLED: Final = "the worker that read the file was killed"


class FileRefused(Exception):
    """The file cannot be a version. The message has the reason and the fix."""


class ReaderDied(Exception):
    """The reader process died for the first time. It is retried once."""


def run(
    task: str,
    path: Path | None,
    *,
    version: ModelVersion,
    step: str,
    checklist: Checklist,
    argument: Mapping[str, Any] | None = None,
    access: Access | None = None,
    file_bytes: int = 0,
) -> Any:
    """Return the result of the task. `step` is the line of the checklist for a refusal, `path` a file on disk
    that it reads whole, `access` the artifact that it reads in ranges. `file_bytes`: how much it reads
    beside `path`, for its limits.

    Raises FileRefused, ReaderDied, and LeaseLost if the verification is stopped.
    """
    deaths = _count_deaths(version, checklist)
    if deaths >= MAX_DEATHS:
        raise refuse_step(checklist, step, _died_twice(_KILLED))
    _add_death(version, 1)
    try:
        outcome = sandbox.run(
            task,
            {**({"path": str(path)} if path else {}), **(argument or {})},
            limits=sandbox.limits_for((path.stat().st_size if path else 0) + file_bytes),
            while_running=checklist.keep_alive_unless_stopped,
            access=access,
        )
    except BaseException:
        # The verification was stopped, or the worker shuts down: not caused by the file.
        _add_death(version, -1)
        raise
    if not isinstance(outcome, Died):
        _add_death(version, -1)
    return _unwrap(outcome, deaths=deaths, version=version, step=step, checklist=checklist)


@contextmanager
def count_deaths(version: ModelVersion, step: str, checklist: Checklist) -> Iterator[None]:
    """Count a death of the worker if it is killed inside. Whatever else happens there does not count."""
    if _count_deaths(version, checklist) >= MAX_DEATHS:
        raise refuse_step(checklist, step, _died_twice(_KILLED))
    _add_death(version, 1)
    try:
        yield
    finally:
        _add_death(version, -1)


def refuse_step(checklist: Checklist, step: str, reason: str) -> FileRefused:
    checklist.refuse_step(step, reason)
    return FileRefused(reason)


def _unwrap(
    outcome: Outcome, *, deaths: int, version: ModelVersion, step: str, checklist: Checklist
) -> Any:
    match outcome:
        case Finished(value):
            return value
        case Refused(message):
            raise refuse_step(checklist, step, message)
        case Broken(cause):
            logger.warning("version %s cannot be read: %s", version.pk, cause)
            raise refuse_step(checklist, step, "The file cannot be read. Export the model again.")
        case Died(cause, detail):
            logger.warning("reading version %s died of %s: %s", version.pk, cause, detail)
            if deaths + 1 >= MAX_DEATHS:
                raise refuse_step(checklist, step, _died_twice(detail))
            checklist.running(step, f"failed: {detail}; retrying once")
            raise ReaderDied(detail)


def _died_twice(detail: str) -> str:
    return (
        f"Reading the file failed twice: {detail}. Export a simpler or smaller model, or ask a "
        "platform admin to raise the examination limits."
    )


def _count_deaths(version: ModelVersion, checklist: Checklist) -> int:
    rows = ModelVersion.objects.filter(pk=version.pk, lease_token=checklist.lease.token)
    return rows.values_list("examination_deaths", flat=True).first() or 0


def _add_death(version: ModelVersion, count: int) -> None:
    """Add to the count of deaths, never below 0: stopping a verification resets the count while the process is
    still running.
    """
    rows = ModelVersion.objects.filter(pk=version.pk, examination_deaths__gte=-count)
    rows.update(examination_deaths=F("examination_deaths") + count)
