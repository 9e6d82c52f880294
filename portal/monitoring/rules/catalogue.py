"""All groups of rules. A further group is a module here and its line below."""

from __future__ import annotations

from collections.abc import Sequence

from portal.monitoring.rules import gpus, targets, triton, vllm
from portal.monitoring.rules.rule import Group
from portal.monitoring.rules.targets import TargetFacts


def groups(of_targets: Sequence[TargetFacts] = ()) -> list[Group]:
    return [triton.group(), vllm.group(), gpus.group(), targets.group(of_targets)]
