"""The colour tone of a state. Its text is always shown too."""

from __future__ import annotations

OK, WARN, BAD, RUN, BUSY, WAIT = "ok", "warn", "bad", "run", "busy", "wait"

_TONES = {
    OK: (
        "ready",
        "done",
        "approved",
        "completed",
        "pass",
        "running",
        "active",
        "succeeded",
        "clean",
        "trusted",
        "in sync",
    ),
    WARN: (
        "degraded",
        "paused",
        "expired",
        "warning",
        "not known",
        "not comparable",
        "untrusted",
        "drifted",
    ),
    BAD: (
        "failed",
        "quarantined",
        "rejected",
        "aborted",
        "fail",
        "error",
        "crashloopbackoff",
        "unreachable",
        "code",
        "unreadable",
        "invalid",
        "missing",
        "not ours",
    ),
    RUN: ("canary", "promoting", "watching"),
    BUSY: (
        "uploading",
        "verifying",
        "progressing",
        "applying",
        "preparing",
        "aborting",
        "stopping",
        "canceling",
        "pending",
        "not applied yet",
        "being removed",
    ),
}
_TONE_OF = {state: tone for tone, states in _TONES.items() for state in states}


def get_tone(state: str) -> str:
    """Return the tone of a state. Unknown and resting states are grey."""
    return _TONE_OF.get(state.lower(), WAIT)


def describe_state(state: str) -> str:
    """Format a stored state as text: "roll_back" becomes "Roll back"."""
    text = state.replace("_", " ").replace("-", " ").strip()
    return text[:1].upper() + text[1:]
