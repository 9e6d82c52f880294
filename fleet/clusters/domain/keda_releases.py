"""The oldest KEDA that what the portal writes works with."""

from __future__ import annotations

from typing import Final

from fleet.clusters.domain.kserve_releases import Release, format_release, parse

# "0 8 * * 1,3,5": earlier releases take no commas in the times of a cron trigger.
OLDEST: Final[Release] = (2, 20)


def problem_with(version: str) -> str:
    """Say why the installed KEDA is too old; empty if it is not, or not known."""
    release = parse(version)
    if release is None or release >= OLDEST:
        return ""
    return (
        f"KEDA {version.removeprefix('v')} is installed; {format_release(OLDEST)} or newer is needed, "
        "because earlier releases take no office hours of single days"
    )
