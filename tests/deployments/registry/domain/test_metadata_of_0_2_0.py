"""No value that 0.2.0 had of a version is lost where two of them have one label."""

from __future__ import annotations

from deployments.migrations.from_0_2_0.versions import convert_metadata


def test_a_second_value_of_a_label_goes_to_the_notes() -> None:
    converted = convert_metadata(
        {
            "team": "vision",
            "tags": ["team=nlp", "site=a", "site=b", "site=a", "edge"],
            "notes": "Trained twice.",
            "edge": True,
            "accuracy": 0.9,
        },
        is_reference=False,
    )

    assert converted == {
        "labels": {"team": "vision", "site": "a", "edge": ""},
        "metrics": {"accuracy": 0.9},
        "notes": "Trained twice.\nteam=nlp\nsite=b\nedge: True",
    }
