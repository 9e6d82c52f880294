"""What a run built, sent and went through, as the servers themselves count it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.cluster.build import Build
from tests.cluster.running import Cluster

_REQUESTS = re.compile(r"^apiserver_request_total\{(.*)\} (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')


def describe(cluster: Cluster, builds: Sequence[Build], journeys: Path) -> str:
    return "\n".join(
        [
            "What was built",
            *(f"  {made.describe()}" for made in builds),
            f"  the API server says {_version(cluster)}",
            "What was sent by server-side apply",
            *(f"  {line}" for line in _describe_objects(cluster)),
            "Journeys and releases",
            *(f"  {line}" for line in _lines(journeys)),
        ]
    )


def describe_alone(builds: Sequence[Build], journeys: Path) -> str:
    """Of a run without Kubernetes."""
    built = [f"  {made.describe()}" for made in builds]
    return "\n".join(
        ["What was built", *built, "Journeys", *(f"  {one}" for one in _lines(journeys))]
    )


def _version(cluster: Cluster) -> str:
    return re.sub(r"\s+", " ", cluster.admin.run("version").splitlines()[-1])


def _describe_objects(cluster: Cluster) -> Iterator[str]:
    stored, dry, refused = Counter[str](), Counter[str](), Counter[str]()
    for labels, value in _REQUESTS.findall(cluster.admin.run("get", "--raw", "/metrics")):
        request = dict(_LABEL.findall(labels))
        if request["verb"] == "APPLY":
            is_accepted = request["code"].startswith("2")
            counter = (dry if request["dry_run"] else stored) if is_accepted else refused
            counter[request["resource"]] += int(float(value))
    for counter, what in ((stored, "stored"), (dry, "accepted as a dry run"), (refused, "refused")):
        kinds = ", ".join(f"{count} {kind}" for kind, count in counter.most_common())
        yield f"{counter.total()} objects {what}: {kinds or 'none'}"


def _lines(path: Path) -> list[str]:
    return sorted(set(path.read_text().splitlines())) if path.is_file() else ["none"]
