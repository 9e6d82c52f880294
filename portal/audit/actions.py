"""The audit actions. Each app registers its own at import; only registered ones can be recorded."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AuditAction:
    """An action that the audit trail records. `code` is stable ("version.registered"); `phrase` completes the
    sentence "Ana …".
    """

    code: str
    phrase: str


_REGISTRY: dict[str, AuditAction] = {}


def register(code: str, phrase: str) -> AuditAction:
    """Raise ValueError when another phrase is already registered under the code."""
    action = AuditAction(code, phrase)
    if _REGISTRY.setdefault(code, action) != action:
        raise ValueError(f"audit action {code} is registered twice")
    return action


def phrase_of(code: str) -> str:
    return _REGISTRY[code].phrase if code in _REGISTRY else code


def choices() -> list[tuple[str, str]]:
    """Return every registered action as (code, phrase), for filters."""
    return sorted((action.code, action.phrase) for action in _REGISTRY.values())
