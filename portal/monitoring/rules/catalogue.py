"""All groups of rules. A further group is a module here and its line below."""

from __future__ import annotations

from collections.abc import Sequence

from portal.monitoring.rules import gpus, portal, targets, triton, vllm
from portal.monitoring.rules.rule import Group
from portal.monitoring.rules.targets import TargetFacts


def groups(of_targets: Sequence[TargetFacts] = ()) -> list[Group]:
    """Return the rule groups of model servers, GPUs and SLOs. Those of the portal are `portal_groups`."""
    return [triton.group(), vllm.group(), gpus.group(), targets.group(of_targets)]


def portal_groups() -> list[Group]:
    """Return the rule groups of the Prometheus that scrapes the portal; elsewhere its absence would be an alert."""
    return [portal.group()]
