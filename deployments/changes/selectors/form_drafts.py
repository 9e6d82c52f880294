"""The unsent forms of a person in a team, with what became of their versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import QuerySet

from deployments.models import FormDraft, ModelVersion
from deployments.states import VersionState
from portal.accounts.models import Team, User
from portal.core.errors import NotFound

_CHOOSE: Final = "Choose another version."


@dataclass(frozen=True, slots=True)
class OfferedDraft:
    """A draft that its author may continue. `problem` says why its version can no longer be deployed."""

    key: str
    name: str
    version: str
    fields: Mapping[str, str]
    left_out: Sequence[str]
    changed_at: datetime
    problem: str = ""

    @property
    def title(self) -> str:
        return self.name or self.version or "a new deployment"


def list_drafts(*, user: User, team: Team) -> list[OfferedDraft]:
    """List the person's own drafts of the team, newest first."""
    return _offer(_list_unsent(user, team), team)


def get_draft(*, user: User, team: Team, key: str) -> OfferedDraft:
    """Return a draft of the person. Raises NotFound, also for one of somebody else."""
    offered = _offer(_list_unsent(user, team).filter(key=key[:32]), team)
    if not offered:
        raise NotFound("This draft no longer exists. It was sent or deleted.")
    return offered[0]


def _list_unsent(user: User, team: Team) -> QuerySet[FormDraft]:
    return FormDraft.objects.filter(user=user, team=team, sent_at=None)


def _offer(rows: QuerySet[FormDraft], team: Team) -> list[OfferedDraft]:
    drafts = list(rows)
    ids = {row.pk: _read_version_id(row) for row in drafts}
    states: dict[int, str] = {}
    if any(ids.values()):
        named = ModelVersion.objects.filter(
            pk__in=[pk for pk in ids.values() if pk], model__team=team
        )
        states = dict(named.order_by().values_list("pk", "state"))
    return [_describe(row, ids[row.pk], states) for row in drafts]


def _describe(row: FormDraft, version_id: int, states: Mapping[int, str]) -> OfferedDraft:
    return OfferedDraft(
        key=row.key,
        name=row.fields.get("name", ""),
        version=row.version_label,
        fields=row.fields,
        left_out=row.left_out,
        changed_at=row.changed_at,
        problem=_describe_problem(row.version_label, version_id, states),
    )


def _read_version_id(row: FormDraft) -> int:
    text = row.fields.get("version", "")
    is_id = text.isascii() and text.isdecimal() and len(text) < 19
    return int(text) if is_id and row.version_label else 0


def _describe_problem(label: str, version_id: int, states: Mapping[int, str]) -> str:
    """Say why the version of a draft can no longer be deployed. Empty if it can, or if there is none."""
    if not version_id:
        return ""
    state = states.get(version_id)
    if state is None:
        return f"{label} was deleted. {_CHOOSE}"
    if state == VersionState.READY:
        return ""
    return f"{label} is {state}. {_CHOOSE}"
