"""Convert what a decided request showed, and what was found edited on a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from deployments.migrations.from_0_2_0.versions import convert_metadata

Json = dict[str, Any]
_OUTCOMES = {"healed": "reverted", "held": "pending"}


def convert_decided(decided: Mapping[str, Any]) -> Json:
    """Convert the evidence of a decided request; {} of an open one."""
    if not decided:
        return {}
    converted = {name: value for name, value in decided.items() if name != "standing"}
    standing = decided["standing"]
    return {
        **converted,
        "promotion": {},
        "metadata": convert_metadata(decided["metadata"], is_reference=True),
        "approval_status": {**standing, "rows": list(map(_convert_progress, standing["rows"]))},
    }


def convert_drift(drift: Mapping[str, Any]) -> Json:
    """Convert the drift of a deployment; {} without any."""
    if not drift:
        return {}
    return {
        "outcome": _OUTCOMES[drift["outcome"]],
        "edits": [_rename(edit, {"wanted": "desired"}) for edit in drift["edits"]],
        "detected_at": drift["found_at"],
        "since": drift["since"],
        "reverts": drift["heals"],
    }


def convert_observed_pipeline(observed: Mapping[str, Any]) -> Json:
    """Convert the observed state of a pipeline; {} before the first observation."""
    if not observed:
        return {}
    return {"conditions": observed.get("conditions", []), "reverted": observed.get("healed", "")}


def convert_differences(differences: Sequence[Mapping[str, Any]]) -> list[Json]:
    """Convert the differences of golden answers."""
    return [
        _rename(
            {name: value for name, value in row.items() if name != "is_within"},
            {"first_words": "mismatch"},
        )
        for row in differences
    ]


def _convert_progress(row: Mapping[str, Any]) -> Json:
    return _rename(row, {"words": "description"})


def _rename(row: Mapping[str, Any], names: Mapping[str, str]) -> Json:
    return {names.get(name, name): value for name, value in row.items()}
