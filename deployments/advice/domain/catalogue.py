"""All kinds of advice. A further kind is a module in kinds/ and its line here."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Final

from deployments.advice.domain.advice import Saving
from deployments.advice.domain.evidence import DEMO_DATA, EvidenceLine
from deployments.advice.domain.facts import WEEK_HOURS, DeploymentFacts, NodeFacts
from deployments.advice.domain.kinds import (
    fewer_replicas,
    idle,
    long_queue,
    multi_model,
    quiet_hours,
    smaller_gpu,
    spot,
    unused_nodes,
)
from deployments.spec.domain.serving_spec import ServingSpec
from portal.core.definitions import Rejected

_DEPLOYMENTS: Final[Mapping[str, Callable[[DeploymentFacts], Saving | None]]] = {
    idle.CODE: idle.decide,
    fewer_replicas.CODE: fewer_replicas.decide,
    long_queue.BATCHES: long_queue.decide_batches,
    long_queue.INSTANCES: long_queue.decide_instances,
    smaller_gpu.MIG: smaller_gpu.decide_mig,
    smaller_gpu.SHARED: smaller_gpu.decide_shared,
    smaller_gpu.INSTANCE: smaller_gpu.decide_instance,
    spot.CODE: spot.decide,
    quiet_hours.OFFICE: quiet_hours.decide_office_hours,
    quiet_hours.ZERO: quiet_hours.decide_scale_to_zero,
}
TITLES: Final[Mapping[str, str]] = {
    idle.CODE: idle.TITLE,
    fewer_replicas.CODE: fewer_replicas.TITLE,
    long_queue.BATCHES: "Larger batches",
    long_queue.INSTANCES: "More instances",
    smaller_gpu.MIG: "MIG slice",
    smaller_gpu.SHARED: "Shared GPU",
    smaller_gpu.INSTANCE: "Cheaper instance",
    spot.CODE: spot.TITLE,
    quiet_hours.OFFICE: "Office hours",
    quiet_hours.ZERO: "Scale to zero",
    multi_model.CODE: multi_model.TITLE,
    unused_nodes.CODE: unused_nodes.TITLE,
}


def advise_deployment(facts: DeploymentFacts) -> Iterator[tuple[str, Saving]]:
    """Yield each kind of advice for the deployment with its saving. An idle deployment gets only that advice."""
    for kind, decide in _DEPLOYMENTS.items():
        saving = _accepted(decide, facts)
        if saving is not None:
            yield kind, _marked(saving, facts.made_up_hours)
            if kind == idle.CODE:
                return


def advise_team(
    team: Mapping[int, DeploymentFacts], *, declined: Collection[int] = ()
) -> dict[int, dict[str, Saving]]:
    """Return the savings by deployment and kind. `declined` are deployments whose team does not want their model
    moved.
    """
    advice = {key: dict(advise_deployment(facts)) for key, facts in team.items()}
    for group in list(multi_model.decide(team, advice, declined=declined)):
        kept = {kind: own for kind, own in advice[group.host].items() if group.keeps(kind)}
        advice[group.host] = kept
        for key, saving in group.savings.items():
            if saving.is_worthwhile:
                advice[key][multi_model.CODE] = _marked(saving, team[key].made_up_hours)
    return advice


def _accepted(
    decide: Callable[[DeploymentFacts], Saving | None], facts: DeploymentFacts
) -> Saving | None:
    """Return the saving that `decide` finds. None if it is not worthwhile, or if the rules of a spec refuse the
    proposed change.
    """
    try:
        saving = decide(facts)
        if saving is None or not saving.is_worthwhile:
            return None
        if saving.proposal is not None and saving.proposal.kind == "canary":
            ServingSpec.from_json({**facts.spec.to_json(), **saving.proposal.settings})
    except Rejected:
        return None
    return saving


def advise_node(facts: NodeFacts) -> Iterator[tuple[str, Saving]]:
    saving = unused_nodes.decide(facts)
    if saving is not None and saving.is_worthwhile:
        yield unused_nodes.CODE, _marked(saving, facts.made_up_hours)


def _marked(saving: Saving, made_up_hours: int) -> Saving:
    """Add an evidence line if some of the hours come from generated sample history."""
    if not made_up_hours:
        return saving
    sample = EvidenceLine(DEMO_DATA, f"{made_up_hours} of {WEEK_HOURS} hours")
    return replace(saving, evidence=(*saving.evidence, sample))
