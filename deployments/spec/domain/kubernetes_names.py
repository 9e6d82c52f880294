"""Which names Kubernetes and KServe take, said before the cluster says it.

A revision's workload is `{deployment}-r{n}`; KServe makes the Service `{deployment}-r{n}-predictor`
and the host label `{deployment}-r{n}-{namespace}`, and each must fit a DNS label.
"""

from __future__ import annotations

import re
from typing import Final

from deployments.domain.problems import Rejected

LONGEST_LABEL: Final = 63
LONGEST_NAME: Final = 30
# Room for revisions up to this number, so that a name never becomes too long later.
_HIGHEST_REVISION: Final = 9999
_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")


def workload_name(deployment: str, number: int) -> str:
    return f"{deployment}-r{number}"


def longest_name(namespace: str) -> int:
    """How long a deployment's name may be in this namespace."""
    suffix = len(f"-r{_HIGHEST_REVISION}")
    for_service = LONGEST_LABEL - suffix - len("-predictor")
    for_host = LONGEST_LABEL - suffix - len(f"-{namespace}")
    return min(LONGEST_NAME, for_service, for_host)


def problem_with(name: str, *, namespace: str) -> str:
    """What is wrong with the deployment's name and how to mend it; empty when nothing is."""
    if not name:
        return "Give the deployment a name, for example 'detector'."
    longest = longest_name(namespace)
    if len(name) > longest:
        return (
            f"{name!r} has {len(name)} characters; shorten it to {longest}, because Kubernetes "
            f"allows 63 for {name}-r1-predictor and for {name}-r1-{namespace}."
        )
    if _NAME.fullmatch(name) is None:
        mended = _mend(name, longest)
        hint = f" For example {mended!r}." if mended else ""
        return (
            f"{name!r} is no Kubernetes name: use lower-case letters, digits and '-', begin with a "
            f"letter and end with a letter or digit.{hint}"
        )
    if re.search(r"-r\d+$", name):
        return f"{name!r} ends like a revision; leave out '{name[name.rindex('-') :]}'."
    return ""


def require_legal(name: str, *, namespace: str) -> None:
    """Raise Rejected with the fix when Kubernetes would refuse a name made from this one."""
    problem = problem_with(name, namespace=namespace)
    if problem:
        raise Rejected(problem, {"name": problem})


def _mend(name: str, longest: int) -> str:
    text = re.sub(r"[^a-z0-9]+", "-", name.lower())
    return re.sub(r"^[^a-z]+", "", text)[:longest].strip("-")
