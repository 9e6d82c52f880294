"""Small deployments of a team whose models fit one Triton: serve them from one of the deployments."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from deployments.advice.domain.advice import Proposal, Risk, Saving
from deployments.advice.domain.evidence import EvidenceLine
from deployments.advice.domain.facts import HOUR_MS, DeploymentFacts, mean_utilisation
from deployments.advice.domain.kinds import idle, spot
from deployments.advice.domain.kinds.fewer_replicas import UNUSED_BELOW
from deployments.sizing.domain.demand import BUSY_PERCENT
from deployments.sizing.domain.memory import Need, combine
from deployments.spec.domain.model_settings import MAX_ADDITIONAL_MODELS, AdditionalModel
from deployments.spec.domain.scaling import FIXED
from deployments.spec.domain.serving_spec import ONNX_ENGINES, ServingSpec
from fleet.gpus.domain.money import HOURS_PER_MONTH
from portal.core.definitions import Rejected
from portal.core.definitions.figures import format_percent

CODE: Final = "multi-model"
TITLE: Final = "Multi-model serving"
# Of the host's own advice this stays true with the other models in it: the others take its room away.
_KEPT: Final = frozenset({spot.CODE})

Own = Mapping[int, Mapping[str, Saving]]


@dataclass(frozen=True, slots=True, eq=False)
class _Member:
    key: int
    facts: DeploymentFacts
    need: Need


@dataclass(frozen=True, slots=True)
class ModelGroup:
    """The deployment that serves the models of all, and by deployment what moving each of the others saves."""

    host: int
    savings: Mapping[int, Saving]

    @staticmethod
    def keeps(kind: str) -> bool:
        """Whether the host's own advice of this kind holds beside it."""
        return kind in _KEPT


def decide(
    team: Mapping[int, DeploymentFacts], own: Own, *, declined: Collection[int] = ()
) -> Iterator[ModelGroup]:
    """Yield the groups that save more than their members' own advice (`own`). `declined` deployments take no part."""
    alike: dict[tuple[str, ...], list[_Member]] = defaultdict(list)
    for key, facts in team.items():
        if key in declined or idle.CODE in own.get(key, {}):
            continue
        if facts.need is not None and _is_small(facts):
            alike[_surroundings(facts)].append(_Member(key, facts, facts.need))
    for members in alike.values():
        for together in _together(members):
            group = _group(together)
            if _best_of(group, own) > _best_alone(together, own):
                yield group


def _together(members: Sequence[_Member]) -> Iterator[list[_Member]]:
    """Yield members that one Triton can serve, the one that stays first, so that the fewest clients move."""
    left = sorted(members, key=lambda one: (-_requests(one.facts), one.facts.name))
    hosts = list(left)
    while hosts:
        host = hosts.pop(0)
        guests = _guests(host, [one for one in left if one is not host])
        if guests:
            yield [host, *guests]
            left = [one for one in left if one is not host and one not in guests]
            hosts = [one for one in hosts if one not in guests]


def _is_small(facts: DeploymentFacts) -> bool:
    """Whether the deployment is one fixed replica on one little-used GPU, and may move to another Triton."""
    spec, utilisation = facts.spec, mean_utilisation(facts.last_week())
    is_one = spec.min_replicas == spec.max_replicas == 1 and spec.gpus == 1 and spec.nodes == 1
    if not is_one or spec.scaling.kind != FIXED or spec.engine not in ONNX_ENGINES:
        return False
    if utilisation is None or utilisation >= UNUSED_BELOW or not facts.model:
        return False
    if facts.is_served_elsewhere:
        return False  # Its clients are about to move.
    return facts.runs_always and facts.memory_mib > 0


def _surroundings(facts: DeploymentFacts) -> tuple[str, ...]:
    """Return the settings that two deployments must share so that one pod can serve both."""
    spec = facts.spec
    return (
        facts.cluster,
        facts.environment,
        spec.engine,
        spec.instance_type,
        spec.gpu_resource,
        spec.image,
        repr(spec.env),
        spec.network.model_dump_json(),
        spec.placement.model_dump_json(),
    )


def _guests(host: _Member, others: Sequence[_Member]) -> list[_Member]:
    """Return the members that fit beside the host, up to the largest number of additional models.

    They fit if memory, GPU time and the rules of a spec allow it. Members with additional models are skipped.
    """
    taken: list[_Member] = []
    for other in others:
        facts = other.facts
        if facts.spec.additional_models:
            continue
        wider = [host, *taken, other]
        if len(host.facts.spec.additional_models) + len(wider) - 1 > MAX_ADDITIONAL_MODELS:
            break
        if _fits(wider) and _is_spec(host.facts, wider[1:]):
            taken.append(other)
    return taken


def _fits(members: Sequence[_Member]) -> bool:
    memory_mib = members[0].facts.memory_mib
    has_room = _need(members).has_room(gpus=1, memory_mib=memory_mib)
    return has_room and _busiest(members) <= BUSY_PERCENT / 100


def _need(members: Sequence[_Member]) -> Need:
    host, *others = members
    return combine(host.need, [(_label(one.facts), one.need) for one in others])


def _busiest(members: Sequence[_Member]) -> float:
    """Return the GPU time of all together in their busiest hour, as a part of it."""
    sums: dict[object, int] = defaultdict(int)
    for one in members:
        for hour in one.facts.last_week():
            sums[hour.start] += hour.busy_ms if hour.is_known else 0
    return max(sums.values(), default=0) / HOUR_MS


def _is_spec(host: DeploymentFacts, guests: Sequence[_Member]) -> bool:
    models = [_settings_of(one.facts) for one in guests]
    if host.model in {one.facts.model for one in guests}:
        return False
    try:
        _with_models(host.spec, models)
    except Rejected:
        return False
    return True


def _with_models(spec: ServingSpec, models: Sequence[AdditionalModel]) -> ServingSpec:
    data = spec.to_json()
    added = [model.model_dump(mode="json") for model in models]
    return ServingSpec.from_json({**data, "additional_models": data["additional_models"] + added})


def _settings_of(facts: DeploymentFacts) -> AdditionalModel:
    spec = facts.spec
    return AdditionalModel(
        model=facts.model,
        version=facts.version,
        batching=spec.batching,
        instances_per_gpu=spec.instances_per_gpu,
        warm_up=spec.warm_up,
        precision=spec.precision,
        triton=spec.triton,
    )


def _group(members: Sequence[_Member]) -> ModelGroup:
    host, *guests = members
    need, busy = _need(members), _busiest(members)
    return ModelGroup(
        host.key, {one.key: _saving(one.facts, host, members, need, busy) for one in guests}
    )


def _saving(
    facts: DeploymentFacts, host: _Member, members: Sequence[_Member], need: Need, busy: float
) -> Saving:
    cost, to = facts.month_amount, host.facts
    models = _with_models(to.spec, [_settings_of(facts)]).to_json()["additional_models"]
    return Saving(
        message=f"Serve {_label(facts)} from {to.name} and then stop {facts.name}: the models of "
        f"{len(members)} deployments fit one Triton.",
        evidence=(
            EvidenceLine("Models together", ", ".join(_label(one.facts) for one in members)),
            EvidenceLine("GPU memory needed", f"{need.mib_on(1):,} of {to.memory_mib:,} MiB"),
            EvidenceLine("Memory figures", need.basis),
            EvidenceLine(
                "GPU utilisation, 7 days",
                format_percent(mean_utilisation(facts.last_week()) or 0.0),
            ),
            EvidenceLine("Busiest hour together", format_percent(busy)),
        ),
        cost_amount=cost,
        saving_amount=cost,
        formula=f"cost of {facts.name} in the last 168 h ÷ 168 \N{MULTIPLICATION SIGN} {HOURS_PER_MONTH} h, "
        "from when it is stopped",
        risk=Risk.HIGH if facts.is_production else Risk.MEDIUM,
        risk_reason=f"Clients of {facts.name} have to move to /v2/models/{facts.model} at the address of "
        f"{to.name} first. The models share one process: one that fails takes all of them down.",
        proposal=Proposal(
            kind="canary", settings={"additional_models": models}, deployment_id=host.key
        ),
    )


def _label(facts: DeploymentFacts) -> str:
    return f"{facts.model}:{facts.version}"


def _requests(facts: DeploymentFacts) -> int:
    return sum(hour.requests for hour in facts.last_week())


def _best_of(group: ModelGroup, own: Own) -> Decimal:
    kept = [saving for kind, saving in own.get(group.host, {}).items() if group.keeps(kind)]
    moved = sum((saving.saving_amount for saving in group.savings.values()), Decimal(0))
    return moved + max((saving.saving_amount for saving in kept), default=Decimal(0))


def _best_alone(members: Sequence[_Member], own: Own) -> Decimal:
    best = (
        max((saving.saving_amount for saving in own.get(one.key, {}).values()), default=Decimal(0))
        for one in members
    )
    return sum(best, Decimal(0))
