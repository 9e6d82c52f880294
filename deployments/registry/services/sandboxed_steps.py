"""Steps of an examination that read the uploaded file: in the sandbox only, and not for ever.

Deaths are counted on the row before each try, so that one of the whole worker counts too. The
second ends the version: what kills its reader twice would do so for ever.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from django.db.models import F

from deployments.models import ModelVersion
from deployments.registry.gateways import sandbox
from deployments.registry.gateways.sandbox import Broken, Died, Finished, Outcome, Refused
from deployments.registry.services.checklist import Checklist

logger = logging.getLogger(__name__)

MOST_DEATHS: Final = 2


class FileRefused(Exception):
    """The bytes cannot become a version; the message says why and how to fix it."""


class ReaderDied(Exception):
    """The process that read the file died for the first time; it is tried once more later."""


def run(
    task: str,
    path: Path,
    *,
    version: ModelVersion,
    step: str,
    checklist: Checklist,
    argument: Mapping[str, Any] | None = None,
) -> Any:
    """What the task answers. `step` is the line of the checklist that a refusal is written to.

    Raises FileRefused, ReaderDied, and LeaseLost when somebody stops the verification meanwhile.
    """
    deaths = _count_deaths(version, checklist)
    if deaths >= MOST_DEATHS:
        raise refused(checklist, step, _died_twice("the worker that read the file was killed"))
    _add_death(version, 1)
    try:
        outcome = sandbox.run(
            task,
            {"path": str(path), **(argument or {})},
            limits=sandbox.limits_for(path.stat().st_size),
            while_running=checklist.keep_alive_unless_stopped,
        )
    except BaseException:
        # Stopped, or the worker ends in good order: not the file's doing.
        _add_death(version, -1)
        raise
    if not isinstance(outcome, Died):
        _add_death(version, -1)
    return _answer(outcome, deaths=deaths, version=version, step=step, checklist=checklist)


def refused(checklist: Checklist, step: str, reason: str) -> FileRefused:
    checklist.refused(step, reason)
    return FileRefused(reason)


def _answer(
    outcome: Outcome, *, deaths: int, version: ModelVersion, step: str, checklist: Checklist
) -> Any:
    match outcome:
        case Finished(value):
            return value
        case Refused(message):
            raise refused(checklist, step, message)
        case Broken(cause):
            reason = f"The file cannot be read ({cause}). Export the model again."
            raise refused(checklist, step, reason)
        case Died(cause, detail):
            logger.warning("reading version %s died of %s: %s", version.pk, cause, detail)
            if deaths + 1 >= MOST_DEATHS:
                raise refused(checklist, step, _died_twice(detail))
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
    """Never below none: a stop sets the count back while the process still ends."""
    rows = ModelVersion.objects.filter(pk=version.pk, examination_deaths__gte=-count)
    rows.update(examination_deaths=F("examination_deaths") + count)
