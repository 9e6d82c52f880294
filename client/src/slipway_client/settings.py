"""Read settings and rollout steps as people type them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from slipway_client.errors import InvalidInput

_DURATION = re.compile(r"(\d{1,6})([smh]?)\Z")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}


def settings(pairs: Sequence[str]) -> dict[str, Any]:
    """Parse settings such as `memory=8Gi scaling.kind=hpa gpus=2`. Values are JSON if they can be, else text.
    Raises InvalidInput.
    """
    result: dict[str, Any] = {}
    for pair in pairs:
        name, is_given, text = pair.partition("=")
        if not is_given or not name:
            raise InvalidInput(f"{pair!r}: write NAME=VALUE, for example memory=8Gi.")
        target = result
        *groups, last = name.split(".")
        for group in groups:
            target = target.setdefault(group, {})
            if not isinstance(target, dict):
                raise InvalidInput(f"{pair!r}: {group} has a value already.")
        target[last] = value(text)
    return result


def value(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def json_file(path: str) -> dict[str, Any]:
    try:
        content = json.loads(Path(path).read_text())
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path} cannot be read as JSON: {error}") from error
    if not isinstance(content, dict):
        raise InvalidInput(f"{path}: expected a JSON object.")
    return content


def merge_settings(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Merge settings: `over` wins; groups are merged field by field."""
    result = dict(base)
    for name, item in over.items():
        is_group = isinstance(item, Mapping) and isinstance(result.get(name), Mapping)
        result[name] = merge_settings(result[name], item) if is_group else item
    return result


def steps(text: str) -> list[dict[str, Any]]:
    """Parse steps such as `5:10m:100,25:10m,50:1h`: weight, soak time and, optionally, requests of the candidate."""
    return [_step(part) for part in text.split(",")]


def _step(text: str) -> dict[str, Any]:
    weight, *rest = text.strip().removesuffix("%").split(":")
    soak = _DURATION.match(rest[0]) if rest else None
    requests = rest[1] if len(rest) > 1 else "100"
    if not weight.isdecimal() or soak is None or len(rest) > 2 or not requests.isdecimal():
        raise InvalidInput(
            f"{text!r} is not a step. Write WEIGHT:SOAK[:REQUESTS], for example 5:10m:100."
        )
    return {
        "weight": int(weight),
        "soak_seconds": int(soak[1]) * _SECONDS[soak[2]],
        "min_requests": int(requests),
    }
