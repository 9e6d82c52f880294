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

    def __init__(self, build: Callable[[QuerySet[Team]], QuerySet[M]]) -> None:
        self._of_all = CompiledQuery(lambda: build(Team.objects.all()))
        self._of_member = CompiledQuery(lambda: build(policy.teams_of(_MEMBER)))
        self._of_one = CompiledQuery(lambda: build(Team.objects.filter(pk=_ONE)))
        self._of_one_of_member = CompiledQuery(
            lambda: build(policy.teams_of(_MEMBER).filter(pk=_ONE))
        )

    def objects(self, actor: Actor, **values: Any) -> list[M]:
        team_id = policy.only_team(actor)
        if isinstance(actor, policy.System) or actor.is_platform_admin:
            if team_id is None:
                return self._of_all.objects(**values)
            return self._of_one.objects(only_team=team_id, **values)
        if team_id is None:
            return self._of_member.objects(member=actor.pk, **values)
        return self._of_one_of_member.objects(member=actor.pk, only_team=team_id, **values)

    def first(self, actor: Actor, **values: Any) -> M | None:
        """Of a query that finds at most one object."""
        return next(iter(self.objects(actor, **values)), None)
