"""Values that the page chooses for a person, who can change each of them.

A choice is made again once what it rests on has changed; a value that a person typed never is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

FIELDS: Final = ("cluster", "engine", "share", "name", "min_replicas", "max_replicas")
_BASIS: Final = ("version", "cluster", "engine", "requests_per_second")
_PREFIX: Final = "suggested_"
BASIS_NAME: Final = f"{_PREFIX}for"


@dataclass(frozen=True, slots=True)
class Suggestions:
    """The values that were chosen when the page was shown, by field, and what they rest on."""

    values: Mapping[str, str] = field(default_factory=dict)
    basis: str = ""

    @property
    def inputs(self) -> Mapping[str, str]:
        """The hidden inputs that bring the suggestions back with the form."""
        values = {f"{_PREFIX}{name}": value for name, value in self.values.items()}
        return {BASIS_NAME: self.basis, **values}

    def drop_outdated(self, typed: Mapping[str, str]) -> dict[str, str]:
        """Return what a person typed or still sees as chosen, without empty fields that have a suggestion."""
        is_outdated = self.basis != build_basis(typed)
        return {
            name: value
            for name, value in typed.items()
            if name not in FIELDS
            or (value.strip(" |") and not (is_outdated and self.values.get(name) == value))
        }

    def renew(self, typed: Mapping[str, str], data: Mapping[str, str]) -> Suggestions:
        """Return the suggestions among `data`: what nobody typed, or what is still as it was suggested."""
        values = {
            name: data.get(name, "")
            for name in FIELDS
            if name not in typed or typed[name] == self.values.get(name)
        }
        return Suggestions(values, build_basis(data))


def read_posted(posted: Mapping[str, Any]) -> Suggestions:
    values = {
        name: str(posted[f"{_PREFIX}{name}"]) for name in FIELDS if f"{_PREFIX}{name}" in posted
    }
    return Suggestions(values, str(posted.get(BASIS_NAME, "")))


def build_basis(data: Mapping[str, str]) -> str:
    return "/".join(data.get(name, "").strip() for name in _BASIS)
