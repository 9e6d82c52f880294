"""Which pods are read themselves, and which through their cluster's Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

# So many are read in an interval of five seconds (`make bench NAME=sweep`).
MOST_DIRECT: Final = 1000
Pod = TypeVar("Pod")


@dataclass(frozen=True, slots=True)
class DirectPods(Generic[Pod]):
    """The pods of one cluster to read directly. `unread` counts the pods beyond MOST_DIRECT, which nothing reads."""

    direct: tuple[Pod, ...]
    unread: int = 0


def after_answer(missing: Sequence[Pod], *, prompt: int) -> DirectPods[Pod]:
    """Return the pods to read directly after Prometheus answered. `missing` are those that it lacks; `prompt` more
    are read directly in any case.
    """
    room = max(0, MOST_DIRECT - prompt)
    return DirectPods(tuple(missing[:room]), unread=max(0, len(missing) - room))


def without_answer(pods: Sequence[Pod], *, prompt: int) -> DirectPods[Pod]:
    """Return the pods to read directly if Prometheus did not answer, all or none: a part would show figures of a
    part of each workload.
    """
    if len(pods) + prompt <= MOST_DIRECT:
        return DirectPods(tuple(pods))
    return DirectPods((), unread=len(pods))


def choose_prompt(
    pods: Sequence[Pod], *, is_prompt: Callable[[Pod], bool]
) -> tuple[list[Pod], list[Pod]]:
    """Split the pods into those to read directly at each poll, up to MOST_DIRECT, and the others."""
    prompt = [pod for pod in pods if is_prompt(pod)]
    others = [pod for pod in pods if not is_prompt(pod)]
    return prompt[:MOST_DIRECT], [*prompt[MOST_DIRECT:], *others]
