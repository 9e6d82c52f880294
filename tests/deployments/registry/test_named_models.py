"""Models that a word of a search names: what the ORM finds by `icontains`, with the pattern made once."""

from __future__ import annotations

import pytest

from deployments.models import Model
from deployments.registry.selectors import named_models
from portal.core import clock
from tests.accounts import make_team, make_user

pytestmark = pytest.mark.django_db
WORDS = [
    *(
        "detector",
        "DETECTOR",
        "etec",
        "vision",
        "ion",
        "100%",
        "0%",
        "_",
        "a_b",
        "axb",
        "\\",
        "\\n",
    ),
    *("straße", "STRASSE", "größe", "GRÖSSE", "'", '"', "{", "}", ",", "null", "NULL", "?", "%s"),
    *(
        "%",
        "%%",
        "detector/",
        "vision/",
        "vision/det",
        "vision/etector",
        "speech/det",
        "/",
        "on,det",
    ),
    *("ⅻ", "ﬁ", "fi", "é", "É", "detectorvision", "nothing-has-it"),
]


@pytest.fixture(autouse=True)
def models() -> list[Model]:
    vision, speech = make_team(slug="vision"), make_team(slug="speech")
    person, at = make_user(username="ana"), clock.now()
    texts = [
        (vision, "detector", "Finds 100% of\nall, 'mostly'", "object detection"),
        (vision, "a_b", "C:\\new {of} the Straße", "größe"),
        (speech, "detector-2", 'says "null", or %s?', ""),
        (speech, "axb", "", "ﬁne É"),
    ]
    return [
        Model.objects.create(
            team=team,
            name=name,
            description=description,
            task=task,
            created_by=person,
            created_at=at,
            changed_at=at,
        )
        for team, name, description, task in texts
    ]


@pytest.mark.parametrize("word", WORDS)
def test_a_word_names_the_models_that_the_orm_finds(word: str) -> None:
    expected = sorted(Model.objects.filter(named_models._has(word)).values_list("pk", flat=True))

    assert sorted(named_models._ids([word], most=10)) == expected
    assert named_models.has_any([word]) == bool(expected)
    assert named_models.has_any(["nothing-has-it", word]) == bool(expected)


def test_words_across_two_columns_name_nothing(models: list[Model]) -> None:
    assert sorted(named_models._ids(["detector", "a_b"], most=10)) == [m.pk for m in models[:3]]
    assert named_models._ids(["2says"], most=10) == []
    assert named_models._ids([], most=10) == []


def test_two_paths_are_two_pairs(models: list[Model]) -> None:
    assert sorted(named_models._ids(["vision/a", "speech/a"], most=10)) == [
        models[1].pk,
        models[3].pk,
    ]
