"""Our own schemas carry every bound of the published ones, for the fields that they have.

Sizes, numbers, enums and required fields are compared one by one; patterns and rules, which can be written in many
ways, by values that ours accept.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from slipway_localcluster.kinds import (
    AUTHORIZATION_POLICY,
    BACKEND_TRAFFIC_POLICY,
    HTTP_ROUTE,
    INFERENCE_SERVICE,
    REQUEST_AUTHENTICATION,
    SECURITY_POLICY,
    SERVING_RUNTIME,
    Kind,
)
from slipway_localcluster.schemas import lookup, values
from slipway_localcluster.schemas.built_in import schema_of_model
from slipway_localcluster.schemas.published import schema_in
from slipway_localcluster.schemas.schema import ANYTHING, Schema

pytestmark = pytest.mark.skipif(
    "SLIPWAY_CRD_DIR" not in os.environ, reason="SLIPWAY_CRD_DIR is not set"
)
_GATEWAYS = (
    HTTP_ROUTE,
    SECURITY_POLICY,
    BACKEND_TRAFFIC_POLICY,
    REQUEST_AUTHENTICATION,
    AUTHORIZATION_POLICY,
)
# Kubernetes' own types, which KServe's kinds repeat: tests of pods cover them.
_OF_KUBERNETES = frozenset(
    name
    for model in ("V1PodSpec", "V1Container")
    for name in (schema_of_model(model) or ANYTHING).fields
)
_VALUES_OF_EACH = 150


def specs_of(kind: Kind) -> tuple[Schema, Schema]:
    published = schema_in(Path(os.environ["SLIPWAY_CRD_DIR"]), kind)
    own = lookup._own_spec(kind)
    assert published is not None
    spec = published.part_named("spec")
    assert spec is not None
    return own() if callable(own) else own, spec


def pairs(
    own: Schema, published: Schema, path: str, skipped: frozenset[str] = frozenset()
) -> Iterator[tuple[str, Schema, Schema]]:
    """Each schema of ours with the published one of the same field."""
    yield path, own, published
    for name in own.fields:
        mine, theirs = own.part_named(name), published.part_named(name)
        if name not in skipped and mine is not None:
            if theirs is None:
                # KServe's older fields, which ours accept so that they are named where they are refused.
                assert skipped, f"{path}.{name} is not published"
                continue
            yield from pairs(mine, theirs, f"{path}.{name}", skipped)
    mine, theirs = own.item(), published.item()
    if mine is not None and theirs is not None:
        yield from pairs(mine, theirs, f"{path}[]", skipped)


def missing_bounds(own: Schema, published: Schema) -> Iterator[str]:
    if not published.types and not published.fields:
        return
    if published.enum and not (own.enum and set(own.enum) <= set(published.enum)):
        yield f"enum {published.enum}"
    if not own.enum:
        yield from _missing_sizes(own, published)
    yield from _missing_structure(own, published)


def _missing_structure(own: Schema, published: Schema) -> Iterator[str]:
    if not set(published.required) <= set(own.required):
        yield f"required {published.required}"
    if published.is_set and not own.is_set:
        yield "a set"
    if published.list_keys and not set(own.list_keys) <= set(published.list_keys):
        yield f"keys {published.list_keys}"
    if own.is_open and own.fields and not published.is_open:
        yield "no other fields"


def _missing_sizes(own: Schema, published: Schema) -> Iterator[str]:
    if own.min_size < published.min_size:
        yield f"at least {published.min_size}"
    if published.max_size is not None and (own.max_size or float("inf")) > published.max_size:
        yield f"at most {published.max_size}"
    if published.minimum is not None and (own.minimum is None or own.minimum < published.minimum):
        yield f"minimum {published.minimum}"
    if published.maximum is not None and (own.maximum is None or own.maximum > published.maximum):
        yield f"maximum {published.maximum}"
    if published.pattern is not None and own.pattern is None:
        yield f"pattern {published.pattern.pattern}"


@pytest.mark.parametrize("kind", [*_GATEWAYS, INFERENCE_SERVICE, SERVING_RUNTIME], ids=str)
def test_no_bound_is_missing(kind: Kind) -> None:
    skipped = frozenset() if kind in _GATEWAYS else _OF_KUBERNETES

    missing = {
        f"{path}: {bound}"
        for path, own, published in pairs(*specs_of(kind), "spec", skipped)
        for bound in missing_bounds(own, published)
    }

    assert missing == set()


def a_value(schema: Schema, rng: random.Random, depth: int = 0) -> Any:
    """Of the right types, and most often within the bounds."""
    if schema.enum:
        return rng.choice(schema.enum)
    if "array" in schema.types:
        count = rng.choice([1, 1, 2, 2, 3, schema.max_size or 3]) if depth < 3 else 1
        item = schema.item()
        return [a_value(item, rng, depth + 1) for _ in range(count)] if item else []
    if "object" in schema.types or schema.fields:
        return {
            name: a_value(schema.part_named(name) or ANYTHING, rng, depth + 1)
            for name in schema.fields
            if name in schema.required or rng.random() < 0.5
        }
    return _scalar(schema, rng)


def _scalar(schema: Schema, rng: random.Random) -> Any:
    if schema.types & {"integer", "number"}:
        least, most = int(schema.minimum or 0), int(schema.maximum or 5)
        return rng.choice([least, most, rng.randint(least, most)])
    if "boolean" in schema.types:
        return rng.choice([True, False])
    return _text(schema, rng) if "string" in schema.types else {}


_TEXTS = (
    *("a", "A", "a-b", "a.b", "a.b-c.d", "*.a.b", "10s", "1h5m", "0s", "x-api-key", "Gateway"),
    *("Service", "HTTPRoute", "gateway.networking.k8s.io", "/", "/a", "/a//b", "/a/./b", "/a/../b"),
    *(
        "/a%2fb",
        "/a%2Fb",
        "/a#b",
        "/a/..",
        "/a/.",
        "a b",
        "/ä",
        "/a b",
        "/a?b",
        "/%zz",
        "-",
        "_",
        "",
    ),
    *(
        "a" * 63,
        "a" * 64,
        "a" * 253,
        "a" * 254,
        "/" + "a" * 1023,
        "slc_",
        "1Mi",
        "a`b",
        "a:b",
        "a\n",
    ),
)


def _text(schema: Schema, rng: random.Random) -> str:
    return rng.choice(_list_fitting(schema))


@cache
def _list_fitting(schema: Schema) -> list[str]:
    fitting = [text for text in _TEXTS if not list(values.find_limit_faults([(text, schema, "")]))]
    return fitting or ["a"]


def is_accepted(value: Any, schema: Schema) -> bool:
    parts = values.find_parts(values.with_defaults(value, schema), schema, "")
    faults = [*values.find_missing(parts), *values.find_limit_faults(parts)]
    return not faults and not list(values.find_rule_faults(parts))


def _told(value: Any, schema: Schema) -> list[str]:
    parts = values.find_parts(values.with_defaults(value, schema), schema, "")
    faults = [*values.find_limit_faults(parts)] or [*values.find_rule_faults(parts)]
    return sorted(f"{fault.field}: {fault.message[:160]}" for fault in faults)


@pytest.mark.parametrize("kind", _GATEWAYS, ids=str)
def test_what_ours_accept_the_published_ones_accept(kind: Kind) -> None:
    rng = random.Random(7)
    refused: dict[str, list[str]] = {}
    tried = 0

    for path, own, published in pairs(*specs_of(kind), "spec"):
        if not (published.rules or published.pattern or published.list_keys or published.is_set):
            continue
        for _ in range(_VALUES_OF_EACH):
            value = a_value(own, rng)
            if is_accepted(value, own):
                tried += 1
                if not is_accepted(value, published):
                    refused.setdefault(path, _told(value, published))

    assert refused == {}
    assert tried > 300
