"""The aliases that going back to an earlier revision moves back, and those that it leaves where they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from deployments.models import Alias, ChangeRequest, Deployment, ModelVersion, Revision, Rollout
from deployments.serving.domain import alias_moves
from deployments.serving.domain.alias_moves import AliasMove
from deployments.states import ChangeKind, RolloutPhase, VersionState


@dataclass(frozen=True, slots=True)
class AliasReturn:
    """The return of an alias to an earlier version. `problem` says why the alias stays where it is; empty when
    it moves from `source` to `target`.
    """

    alias: str
    source: ModelVersion
    target: ModelVersion | None
    problem: str = ""

    @property
    def label(self) -> str:
        return f"{self.source.model.name}@{self.alias}"

    @property
    def description(self) -> str:
        if self.target is None or self.problem:
            return f"{self.label} is not moved back: {self.problem}."
        return f"{self.label} moves back from {self.source.label} to {self.target.label}."


def list_for_change(change: ChangeRequest) -> list[AliasReturn]:
    """List the aliases that a roll back moves back. Empty for other changes."""
    if change.kind != ChangeKind.ROLL_BACK or change.deployment is None:
        return []
    number = change.restored_number or 0
    restored = change.deployment.revisions.filter(number=number).first()
    return [] if restored is None else returns_to(change.deployment, restored)


def returns_to(deployment: Deployment, restored: Revision) -> list[AliasReturn]:
    """Undo the alias moves of all rollouts since the revision was stable last."""
    moves = alias_moves.combine(_moves_since(deployment, restored.number))
    return [_return_of(move, restored) for move in moves]


def _moves_since(deployment: Deployment, number: int) -> Iterator[AliasMove]:
    """Yield the moves, newest first, including those of the rollout that replaced the revision."""
    completed = Rollout.objects.filter(deployment=deployment, phase=RolloutPhase.COMPLETED)
    for rollout in completed.select_related("stable_revision").order_by("-id"):
        yield from (AliasMove.from_json(item) for item in reversed(rollout.alias_moves))
        if rollout.stable_revision.number == number:
            return


def _return_of(move: AliasMove, restored: Revision) -> AliasReturn:
    versions = ModelVersion.objects.select_related("model__team")
    source = versions.get(pk=move.after)
    target = versions.filter(pk=move.before).first() if move.before else None
    if target is None and restored.version.model_id == move.model_id:
        # The rollout made the alias: it names what serves.
        target = restored.version
    return AliasReturn(move.name, source, target, _problem_of(move, source, target))


def _problem_of(move: AliasMove, source: ModelVersion, target: ModelVersion | None) -> str:
    alias = Alias.objects.select_related("version__model").filter(
        model=move.model_id, name=move.name
    )
    now = alias.first()
    if now is None:
        return "someone removed it"
    if now.version_id != source.pk:
        return f"someone moved it to {now.version.label}"
    if target is None:
        return "the restored revision has another model"
    if target.state != VersionState.READY:
        return f"{target.label} is {target.state}"
    return ""


def describe(returns: Sequence[AliasReturn]) -> str:
    """Return sentences for approvers. Empty where no alias is concerned."""
    return " ".join(item.description for item in returns)
