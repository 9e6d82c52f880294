"""Compiled queries of objects in the teams that an actor may see."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic

from django.db.models import BigIntegerField, QuerySet

from portal.accounts import policy
from portal.accounts.models import Team
from portal.accounts.policy import Actor
from portal.core.compiled_queries import CompiledQuery, M, Parameter

_MEMBER = Parameter("member", BigIntegerField())
_ONE = Parameter("only_team", BigIntegerField())


class VisibleQuery(Generic[M]):
    """A compiled query of objects in the teams that an actor may see, which `build` gets.

    Roles are read with each run: a change of them counts at once.
    """

    def __init__(
        self, build: Callable[[QuerySet[Team]], QuerySet[M, Any]], *, keeps_plan: bool = True
    ) -> None:
        def compiled(teams: Callable[[], QuerySet[Team]]) -> CompiledQuery[M]:
            return CompiledQuery(lambda: build(teams()), keeps_plan=keeps_plan)

        self._of_all = compiled(Team.objects.all)
        self._of_member = compiled(lambda: policy.teams_of(_MEMBER))
        self._of_one = compiled(lambda: Team.objects.filter(pk=_ONE))
        self._of_one_of_member = compiled(lambda: policy.teams_of(_MEMBER).filter(pk=_ONE))

    def objects(self, actor: Actor, **values: Any) -> list[M]:
        query, teams = self._of(actor)
        return query.objects(**teams, **values)

    def rows(self, actor: Actor, **values: Any) -> list[tuple[Any, ...]]:
        """What is selected, as a tuple for each row."""
        query, teams = self._of(actor)
        return query.rows(**teams, **values)

    def first(self, actor: Actor, **values: Any) -> M | None:
        """Of a query that finds at most one object."""
        return next(iter(self.objects(actor, **values)), None)

    def _of(self, actor: Actor) -> tuple[CompiledQuery[M], dict[str, int]]:
        """With the values that say which teams."""
        team_id = policy.only_team(actor)
        if isinstance(actor, policy.System) or actor.is_platform_admin:
            if team_id is None:
                return self._of_all, {}
            return self._of_one, {"only_team": team_id}
        if team_id is None:
            return self._of_member, {"member": actor.pk}
        return self._of_one_of_member, {"member": actor.pk, "only_team": team_id}
