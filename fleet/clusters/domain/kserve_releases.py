"""Which KServe release each feature needs, and why.

Read from the sources of releases v0.15.0 to v0.20.0: pkg/apis/serving, pkg/constants, config/llmisvcconfig.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

Release = tuple[int, int]
LATEST_TESTED: Final[Release] = (0, 20)
# Mounts images as volumes (ociModelMode native); earlier releases ignore the setting.
IMAGE_VOLUMES: Final[Release] = (0, 20)


@dataclass(frozen=True, slots=True)
class ReleaseRequirement:
    """The KServe release that a feature needs. `why` completes "needs KServe 0.16 or newer: earlier releases …"."""

    release: Release
    why: str

    @property
    def minimum(self) -> str:
        return format_release(self.release)


REQUIREMENTS: Final[Mapping[str, ReleaseRequirement]] = {
    "kserve": ReleaseRequirement(
        (0, 16), "have no Standard mode under this name and read models from one address only"
    ),
    "kserve-knative": ReleaseRequirement((0, 16), "know Knative mode as Serverless only"),
    "inference-graph": ReleaseRequirement((0, 16), "are not tested with pipelines"),
    "llm-inference-service": ReleaseRequirement((0, 18), "ignore the options of vLLM"),
    "local-model-cache": ReleaseRequirement(
        (0, 18), "download to nodes without the team's service account"
    ),
}
_RELEASE = re.compile(r"v?(\d+)\.(\d+)\b")


def parse(version: str) -> Release | None:
    """Parse a release: (0, 20) for v0.20.0-rc1. None for anything that is not a release, such as v1beta1."""
    match = _RELEASE.match(version)
    return (int(match[1]), int(match[2])) if match else None


def format_release(release: Release) -> str:
    return f"{release[0]}.{release[1]}"


def problem_with(feature: str, version: str) -> str:
    """Return why the installed KServe is too old for the feature; empty when it is not, or not known."""
    release, requirement = parse(version), REQUIREMENTS.get(feature)
    if release is None or requirement is None or release >= requirement.release:
        return ""
    return (
        f"KServe {version.removeprefix('v')} is installed; {requirement.minimum} or newer is needed, "
        f"because earlier releases {requirement.why}"
    )


def describe_untested(version: str) -> str:
    """Return why nobody knows that the installed KServe does what the portal expects; empty when it was tested, or
    is not known.
    """
    release = parse(version)
    if release is None or release <= LATEST_TESTED:
        return ""
    newest = format_release(LATEST_TESTED)
    return f"KServe {version.removeprefix('v')} is installed; {newest} is the newest one tested"


def list_supported() -> list[Release]:
    """Return every release that some feature works with, oldest first."""
    oldest = min(requirement.release for requirement in REQUIREMENTS.values())
    return [(0, minor) for minor in range(oldest[1], LATEST_TESTED[1] + 1)]


def table(titles: Mapping[str, str]) -> str:
    """Return a Markdown table: a row for each feature, a column for each supported release."""
    releases = list_supported()
    head = [
        "Feature",
        *(format_release(release) for release in releases),
        "Because releases before",
    ]
    rows = [
        [
            titles[name],
            *("yes" if release >= requirement.release else "no" for release in releases),
            requirement.why,
        ]
        for name, requirement in REQUIREMENTS.items()
    ]
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
