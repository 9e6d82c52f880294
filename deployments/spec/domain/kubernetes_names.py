"""Names that Kubernetes and KServe accept, checked before the cluster does.

A revision's workload is `{deployment}-r{n}`; KServe makes the Service `{deployment}-r{n}-predictor`
and, with its default `domainTemplate`, the host label `{deployment}-r{n}-predictor-{namespace}`
(`GenerateDomainName` of KServe 0.20); each must fit a DNS label.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from portal.core.definitions import Rejected

LONGEST_LABEL: Final = 63
LONGEST_NAME: Final = 30
# Room for revisions up to this number, so that a name never becomes too long later.
_HIGHEST_REVISION: Final = 9999
_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")


def workload_name(deployment: str, number: int) -> str:
    return f"{deployment}-r{number}"


def longest_name(namespace: str) -> int:
    """Return the longest length that a deployment's name may have in this namespace."""
    suffix = len(f"-r{_HIGHEST_REVISION}")
    return min(LONGEST_NAME, LONGEST_LABEL - suffix - len(f"-predictor-{namespace}"))


def problem_with(name: str, *, namespace: str) -> str:
    """Say what is wrong with the deployment's name and how to fix it. Empty when nothing is."""
    if not name:
        return "Enter a deployment name, for example 'detector'."
    longest = longest_name(namespace)
    if len(name) > longest:
        return (
            f"'{name}' has {len(name)} characters. Shorten it to {longest}: Kubernetes allows "
            f"63 for {name}-r1-predictor-{namespace}, the name of a host that KServe makes."
        )
    if _NAME.fullmatch(name) is None:
        fixed = _fix(name, longest)
        hint = f" For example '{fixed}'." if fixed else ""
        return (
            f"'{name}' is not a valid name: use lowercase letters, digits and '-', start with "
            f"a letter and end with a letter or digit.{hint}"
        )
    if re.search(r"-r\d+$", name):
        return f"'{name}' ends like a revision name. Remove '{name[name.rindex('-') :]}'."
    return ""


def suggest(text: str, *, namespace: str, taken: Collection[str] = ()) -> str:
    """Return a valid and unused name made from the text. Empty when no part of it can be one."""
    longest = longest_name(namespace)
    first = _fix(text, longest)
    if not first or first not in taken:
        return first
    numbered = (f"{first[: longest - len(f'-{i}')].rstrip('-')}-{i}" for i in range(2, 1000))
    return next((name for name in numbered if name not in taken), first)


def require_legal(name: str, *, namespace: str) -> None:
    """Raise Rejected with the fix when Kubernetes would refuse a name made from this one."""
    problem = problem_with(name, namespace=namespace)
    if problem:
        raise Rejected(problem, {"name": problem})


def _fix(name: str, longest: int) -> str:
    text = re.sub(r"[^a-z0-9]+", "-", name.lower())
    return re.sub(r"^[^a-z]+", "", text)[:longest].strip("-")
