"""Queues that a job drains: which of them a team may use, and what does not fit a job over files or a queue."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from typing import Final

from deployments.batch.domain.settings import MAX_FILE_HOURS, BatchSettings
from deployments.batch.domain.sources import catalogue
from deployments.batch.domain.sources.interface import MessageQueue, QueueKind
from portal.core.definitions import Rejected

# Without a setting of the platform: Services of the team's own namespace.
OF_TEAM: Final = ("*.{team}.svc:*", "*.{team}.svc.cluster.local:*")


def is_queue(address: str) -> bool:
    return catalogue.kind_of(address) is not None


def kind_of(source: str) -> QueueKind:
    """Return the kind of queue of an address that `is_queue`. Raises ValueError for another address."""
    kind = catalogue.kind_of(source)
    if kind is None:
        raise ValueError(f"{source} is not a queue")
    return kind


def parse_input(text: str, *, team: str, patterns: Sequence[str]) -> str:
    """Parse the address of a queue that the team may read. Raises Rejected."""
    allowed = [pattern.replace("{team}", team) for pattern in (*OF_TEAM, *patterns)]
    for place in kind_of(text).places_of(text.strip()):
        if not any(fnmatch.fnmatchcase(place, pattern) for pattern in allowed):
            raise _rejected(
                "input",
                f"{team} may not read queues at {place}. Allowed: {', '.join(allowed)}. "
                "A platform admin adds others to SLIPWAY_BATCH_QUEUES.",
            )
    return text.strip()


def parse_output(text: str, *, source: str) -> str:
    """Parse an output that is a queue: a place beside the messages of `source`. Raises Rejected."""
    kind = kind_of(source)
    if catalogue.kind_of(text) is not kind:
        raise _rejected("output", "Answers go to a prefix of S3, or stay with the queue's server.")
    kind.check_output(text.strip(), source)
    return text.strip()


def check_settings(source: str, output: str, settings: BatchSettings) -> None:
    """Check that the settings fit the kind of the input. Raises Rejected."""
    if not is_queue(source):
        for name in ("consumer_group", "dead_letters", "secret"):
            if getattr(settings, name):
                raise _rejected(name, "It is for jobs that drain a queue. Leave it empty.")
        if settings.hours > MAX_FILE_HOURS:
            raise _rejected("hours", f"Use 1 to {MAX_FILE_HOURS} hours for a job over files.")
        return
    read(source, output, settings)


def read(source: str, output: str, settings: BatchSettings) -> MessageQueue:
    """Read the queue that the settings describe. Raises Rejected for names that do not fit together."""
    return kind_of(source).read(source, output, settings)


def _rejected(field: str, problem: str) -> Rejected:
    return Rejected(problem, {field: problem})
