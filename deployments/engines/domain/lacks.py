"""Compare a request with the release of its image: list what is missing, and which releases have it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from deployments.engines.domain import table
from deployments.engines.domain.table import EngineRelease


@dataclass(frozen=True, slots=True)
class Lack:
    """`what` is missing, as a page names it. `fix` says where it is."""

    what: str
    fix: str


def list_lacks(
    release: EngineRelease, arguments: Sequence[str], *, architecture: str, quantization: str
) -> list[Lack]:
    """Return what the release does not take of a server's arguments, and whether it lacks the model's architecture or
    quantisation; empty ones are not known. What no release of the table has may be a plugin's, so it is not judged.
    """
    options = (argument for argument in arguments if argument.startswith("--"))
    return [
        *(lack for option in options for lack in _find(release, option, _takes(option))),
        *_find(
            release,
            f"the architecture {architecture}",
            lambda row: architecture in row.architectures,
        ),
        *_find(
            release,
            f"the quantisation {quantization} of the weights",
            lambda row: quantization in row.quantization,
        ),
    ]


def _takes(option: str) -> Callable[[EngineRelease], bool]:
    return lambda row: row.takes(option)


def _find(
    release: EngineRelease, what: str, has: Callable[[EngineRelease], bool]
) -> Iterator[Lack]:
    if has(release):
        return
    others = [row for row in table.list_vllm_releases() if has(row)]
    newer = [row for row in others if row.release > release.release]
    if newer:
        yield Lack(what, f"Use an image of vLLM {newer[0].name} or newer.")
    elif others:
        yield Lack(what, f"vLLM {others[-1].name} is the last release that has it.")
