"""Whether the pods of both sides carry the same load, so that their times can be compared.

Times and throughput depend on how busy a pod is: with a twentieth of the load there is no queue and no
batch. The load is that of the route: the percentage of requests that it sends to a side, over the ready
pods of that side. What was counted would differ by chance, and so would the verdict; that the requests
follow the route has a verdict of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Final

from portal.core.definitions.figures import format_figure

# Loads that differ by more are not comparable.
MOST_DIFFERENCE: Final = Fraction(3, 2)


class LoadDifference(StrEnum):
    """The load of a candidate's pod compared with one of stable."""

    NONE = "none"
    LESS = "less"
    MORE = "more"


@dataclass(frozen=True, slots=True)
class PodLoad:
    """The load of pods. `stable` and `candidate` are percentages of the requests. A side without ready pods is not
    known.
    """

    stable: int
    candidate: int
    stable_pods: int
    candidate_pods: int
    # What the candidate is compared with.
    stable_name: str = "stable"

    @property
    def ratio(self) -> Fraction | None:
        """The load of a candidate's pod divided by that of one of stable. None if it is not known."""
        if not (self.stable and self.stable_pods and self.candidate_pods):
            return None
        return Fraction(
            self.candidate * self.stable_pods,
            self.stable * self.candidate_pods,
        )

    @property
    def difference(self) -> LoadDifference:
        """The difference in load. NONE also if it is not known, or if stable gets no requests to compare with."""
        ratio = self.ratio
        if ratio is None or 1 / MOST_DIFFERENCE <= ratio <= MOST_DIFFERENCE:
            return LoadDifference.NONE
        return LoadDifference.LESS if ratio < 1 else LoadDifference.MORE

    def describe_difference(self) -> str:
        """Describe the difference in load. Empty if there is none.

        For example "each candidate pod gets 5% of the load of a stable pod (5% of requests on 1 pod, 95% on 1 pod)".
        """
        ratio = self.ratio
        if ratio is None or self.difference == LoadDifference.NONE:
            return ""
        load = _percent_of_load(ratio) if ratio < 1 else f"{format_figure(float(ratio), 2)} times"
        sides = ", ".join(
            f"{percent}% of requests on {pods} {'pod' if pods == 1 else 'pods'}"
            for percent, pods in (
                (self.candidate, self.candidate_pods),
                (self.stable, self.stable_pods),
            )
        )
        return f"each candidate pod gets {load} the load of a {self.stable_name} pod ({sides})"


def _percent_of_load(ratio: Fraction) -> str:
    return "less than 1% of" if ratio < Fraction(1, 100) else f"{float(ratio):.0%} of"
