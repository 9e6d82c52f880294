"""Models that a word of a search names: by any part of a text, whatever its letters mean in a pattern."""

from __future__ import annotations

import pytest

from deployments.models import Model
from deployments.registry.selectors import named_models
from portal.core import clock
from tests.accounts import make_team, make_user

pytestmark = pytest.mark.django_db
NAMED = {
    "DETECTOR": ["detector", "detector-2"],
    "ion": ["detector", "a_b"],
    "speech": ["detector-2", "axb"],
    "mostly": ["detector"],
    "größe": ["a_b"],
    "100%": ["detector"],
    "0%": ["detector"],
    "a_b": ["a_b"],
    "_": ["a_b"],
    "\\new": ["a_b"],
    "'": ["detector"],
    '"null"': ["detector-2"],
    "%s": ["detector-2"],
    "vision/": ["detector", "a_b"],
    "vision/det": ["detector"],
    "vision/etector": [],
    "speech/det": ["detector-2"],
    "detectorvision": [],
    "nothing-has-it": [],
}


@pytest.fixture(autouse=True)
def models() -> None:
    vision, speech = make_team(slug="vision"), make_team(slug="speech")
    person, at = make_user(username="ana"), clock.now()
    texts = [
        (vision, "detector", "Finds 100% of\nall, 'mostly'", "object detection"),
        (vision, "a_b", "C:\\new {of} the Straße", "größe"),
        (speech, "detector-2", 'says "null", or %s?', ""),
        (speech, "axb", "", "ﬁne É"),
    ]
    for team, name, description, task in texts:
        Model.objects.create(
            team=team,
            name=name,
            description=description,
            task=task,
            created_by=person,
            created_at=at,
            changed_at=at,
        )


@pytest.mark.parametrize(("word", "names"), NAMED.items(), ids=NAMED)
@pytest.mark.parametrize("most", [500, 0], ids=["ids", "condition"])
def test_a_word_names_models(
    monkeypatch: pytest.MonkeyPatch, word: str, names: list[str], most: int
) -> None:
    monkeypatch.setattr(named_models, "_MAX_IDS", most)

    named = Model.objects.filter(pk__in=named_models.find(word)).order_by("pk")

    assert [model.name for model in named] == names
