"""Which colour a state has. The word is always written too; colour alone says nothing."""

from __future__ import annotations

OK, WARN, BAD, RUN, BUSY, WAIT = "ok", "warn", "bad", "run", "busy", "wait"

_TONES = {
    OK: ("ready", "done", "approved", "completed", "pass", "running", "active", "succeeded"),
    WARN: ("degraded", "paused", "expired", "warning"),
    BAD: (
        "failed",
        "quarantined",
        "rejected",
        "aborted",
        "fail",
        "error",
        "crashloopbackoff",
        "unreachable",
    ),
    RUN: ("canary", "promoting"),
    BUSY: (
        "uploading",
        "verifying",
        "progressing",
        "applying",
        "preparing",
        "aborting",
        "stopping",
        "pending",
    ),
}
_TONE_OF = {state: tone for tone, states in _TONES.items() for state in states}


def of(state: str) -> str:
    """Tone of any state of the product; unknown and resting states wait in grey."""
    return _TONE_OF.get(state.lower(), WAIT)


def describe_state(state: str) -> str:
    """A stored state as a person reads it: "roll_back" becomes "Roll back"."""
    text = state.replace("_", " ").replace("-", " ").strip()
    return text[:1].upper() + text[1:]
