"""The tables of legal transitions: complete, and every path can end."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import pytest

from deployments import states

TABLES: dict[str, tuple[type[StrEnum], Mapping[StrEnum, frozenset[StrEnum]]]] = {
    "version": (states.VersionState, states.VERSION),  # type: ignore[dict-item]  # mapping keys are invariant
    "import": (states.ImportState, states.IMPORT),  # type: ignore[dict-item]  # as above
    "change": (states.ChangeState, states.CHANGE),  # type: ignore[dict-item]  # as above
    "deployment": (states.DeploymentState, states.DEPLOYMENT),  # type: ignore[dict-item]  # as above
    "rollout": (states.RolloutPhase, states.ROLLOUT),  # type: ignore[dict-item]  # as above
    "advice": (states.AdviceState, states.ADVICE),  # type: ignore[dict-item]  # as above
}


@pytest.mark.parametrize("name", TABLES)
def test_every_state_has_its_row(name: str) -> None:
    enum, table = TABLES[name]

    assert set(table) == set(enum)


@pytest.mark.parametrize("name", TABLES)
def test_every_state_can_be_reached_from_the_first(name: str) -> None:
    enum, table = TABLES[name]
    reached, edge = set(), [next(iter(enum))]
    while edge:
        state = edge.pop()
        if state not in reached:
            reached.add(state)
            edge.extend(table[state])

    assert reached == set(enum)


def test_abort_is_legal_from_every_phase_that_is_not_final() -> None:
    final = {states.RolloutPhase.COMPLETED, states.RolloutPhase.ABORTED}
    for phase in set(states.RolloutPhase) - final - {states.RolloutPhase.ABORTING}:
        assert states.RolloutPhase.ABORTING in states.ROLLOUT[phase], phase
    assert all(states.ROLLOUT[phase] == frozenset() for phase in final)
