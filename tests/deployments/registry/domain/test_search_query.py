from __future__ import annotations

import pytest

from deployments.registry.domain.metadata.search_query import (
    MetricCondition,
    SearchQuery,
    VersionReference,
    parse,
    parse_condition,
)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("", SearchQuery()),
        ("Int8 Detector", SearchQuery(words=("int8", "detector"))),
        ("the detector with int8", SearchQuery(words=("detector", "int8"))),
        ("the", SearchQuery(words=("the",))),
        ("v3", SearchQuery(references=(VersionReference(3),))),
        ("detector:3", SearchQuery(references=(VersionReference(3, "detector"),))),
        (
            "vision/detector:v3",
            SearchQuery(references=(VersionReference(3, "detector", "vision"),)),
        ),
        ("v99999999999", SearchQuery(words=("v99999999999",))),
        ("v9999999999", SearchQuery(words=("v9999999999",))),
        ("vgg16", SearchQuery(words=("vgg16",))),
        ("mAP > 0.5", SearchQuery(conditions=(MetricCondition("map", ">", 0.5),))),
        ("loss<=1e-3", SearchQuery(conditions=(MetricCondition("loss", "<=", 0.001),))),
        ("map>high", SearchQuery(words=("map>high",))),
        ("map>nan", SearchQuery(words=("map>nan",))),
        ("precision=int8", SearchQuery(labels=(("precision", "int8"),))),
        ("epochs=30", SearchQuery(conditions=(MetricCondition("epochs", "=", 30.0),))),
        ("=", SearchQuery(words=("=",))),
        ("a\x00b", SearchQuery(words=("b",))),
        (
            " ".join(f"w{n}" for n in range(30)),
            SearchQuery(words=tuple(f"w{n}" for n in range(10))),
        ),
    ],
)
def test_what_is_typed_is_sorted_by_what_it_says(text: str, query: SearchQuery) -> None:
    assert parse(text) == query


@pytest.mark.parametrize("text", ["", "map", "map>", ">0.5", "map>>0.5", "a b>1", "map>inf"])
def test_what_is_no_condition_is_none(text: str) -> None:
    assert parse_condition(text) is None
