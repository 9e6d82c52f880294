"""Saving golden requests: who may, what is refused, and that a saved one never changes."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.models import GoldenRequest, ModelVersion
from deployments.quality.domain import golden_requests as quality_golden_requests
from deployments.quality.selectors import quality
from deployments.quality.services import golden_requests
from portal.audit.models import AuditEvent
from portal.core.errors import Forbidden, Invalid, NotFound
from tests.deployments.golden_requests import SIGNATURE, request_of, save, tensor
from tests.deployments.world import World


def test_an_edit_is_a_new_row_and_the_old_one_stays_as_it_was(world: World) -> None:
    old = save(world, y=2.0)
    new = save(world, y=2.5)

    assert (old.number, new.number) == (1, 2)
    old.refresh_from_db()
    assert (old.expected[0]["data"], old.retired_at is None) == ([2.0], False)
    live = quality.golden_requests_of(world.version1.model)
    assert [(row.name, row.number) for row in live] == [("one", 2)]
    events = AuditEvent.objects.filter(action="golden_request.saved").order_by("id")
    assert [(event.actor_name, event.after["number"]) for event in events] == [
        ("member", 1),
        ("member", 2),
    ]


def test_a_member_deletes_it_once_and_it_is_audited(world: World) -> None:
    row = save(world)

    golden_requests.retire(actor=world.member, golden_id=row.pk)

    assert not quality.golden_requests_of(world.version1.model).exists()
    assert AuditEvent.objects.get(action="golden_request.retired").before == {
        "name": "one",
        "number": 1,
    }
    with pytest.raises(NotFound):
        golden_requests.retire(actor=world.member, golden_id=row.pk)
    assert save(world).number == 2


@pytest.mark.parametrize(("who", "refusal"), [("viewer", Forbidden), ("stranger", NotFound)])
def test_others_neither_save_nor_delete(world: World, who: str, refusal: type[Exception]) -> None:
    row = save(world)
    person = getattr(world, who)
    before = AuditEvent.objects.count()

    with pytest.raises(refusal):
        golden_requests.save(
            actor=person,
            team_slug="vision",
            model_name="detector",
            name="two",
            request=request_of(1),
            expected=[tensor("y", 2)],
        )
    with pytest.raises(refusal):
        golden_requests.retire(actor=person, golden_id=row.pk)

    assert GoldenRequest.objects.get().retired_at is None
    assert AuditEvent.objects.count() == before


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"name": " "}, "name"),
        ({"name": "a\x00b"}, "name"),
        ({"request": {"inputs": [tensor("z", 1)]}}, "request"),
        ({"request": []}, "request"),
        ({"expected": {"error": "no"}}, "expected"),
        ({"expected": [{**tensor("y", 1), "datatype": "INT64", "data": [1]}]}, "expected"),
        ({"tolerances": {"y": {"relative": 2}}}, "tolerances"),
        ({"request": request_of(float("nan"))}, "request"),
    ],
)
def test_what_no_candidate_could_answer_is_refused(
    world: World, changed: dict[str, Any], field: str
) -> None:
    ModelVersion.objects.update(signature=SIGNATURE)
    given = {"name": "one", "request": request_of(1), "expected": [tensor("y", 2)], **changed}

    with pytest.raises(Invalid) as caught:
        golden_requests.save(actor=world.member, team_slug="vision", model_name="detector", **given)

    assert set(caught.value.fields) == {field}
    assert not GoldenRequest.objects.exists()


def test_there_are_never_more_than_can_be_sent_to_every_candidate(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quality_golden_requests, "MOST_PER_MODEL", 2)
    save(world, "one")
    save(world, "two")

    with pytest.raises(Invalid, match="Delete one first"):
        save(world, "three")
    assert save(world, "two").number == 2
    assert quality.golden_requests_of(world.version1.model).count() == 2
