"""Markers that state at a field where its setting works: the engines that use it, what the cluster must have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from pydantic import BaseModel, Field

from deployments.spec.domain.engines import Engine
from portal.core import definitions


def limit_to_engines(engines: Sequence[Engine], unsupported: str) -> Any:
    """Mark a field in `Annotated` with the engines that use it, and the fix for the others (it may name
    {engine}). With these a field keeps its default.
    """
    return Field(json_schema_extra={"engines": list(engines), "unsupported": unsupported})


def needs(options: Mapping[Any, str]) -> Any:
    """Mark a field in `Annotated` with the cluster's option that each value needs: value -> option."""
    extra: dict[str, Any] = {"needs": dict(options)}
    return Field(json_schema_extra=extra)


@cache
def list_unsupported(engine: str, model: type[BaseModel]) -> Mapping[str, str]:
    """Return path -> fix of every field that the engine does not use; of a part, not of its fields too."""
    fixes: dict[str, str] = {}
    for path, definition in definitions.deep_fields_of(model).items():
        engines = definition.extra.get("engines", (engine,))
        if engine not in engines and path.rpartition(".")[0] not in fixes:
            fixes[path] = definition.extra["unsupported"].format(engine=engine)
    return fixes


@cache
def needs_of(model: type[BaseModel]) -> Mapping[tuple[str, Any], str]:
    """Return path and value -> the cluster's option that the value needs."""
    return {
        (path, value): option
        for path, definition in definitions.deep_fields_of(model).items()
        for value, option in definition.extra.get("needs", {}).items()
    }
