"""The verdict of a guard from what its tests say: one order of questions, whatever was measured.

- not enough data: numbers that are missing, and whatever is not decided yet.
- fail: a sequential test rejects that the candidate is as allowed. The verdict stays for the rollout.
- not comparable: times or throughput beside stable's, where pods of one side have more to do.
- pass: a test shows that it is within the limit; or, unless the plan is strict, the step's minimum
  number of requests was observed, the figure is within the limit and no test rejects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from deployments.guards.domain.evidence import Verdict
from deployments.guards.domain.load import PodLoad


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictInputs:
    """The inputs of a verdict. `alpha` is what one test may spend; `unknown` says why there are no current numbers."""

    alpha: float
    is_strict: bool
    min_requests: int
    unknown: str = ""
    # None: there is no stable side.
    load: PodLoad | None = None


class StepFindings(Protocol):
    """The observations of one guard at one step, and the results of its tests. A description is empty if it does
    not apply.
    """

    @property
    def by(self) -> VerdictInputs: ...

    @property
    def is_worse(self) -> bool:
        """Whether a test has ever said worse than allowed in this rollout."""

    @property
    def is_shown_within(self) -> bool:
        """Whether this step has shown that all limits are met."""

    @property
    def is_within(self) -> bool:
        """Whether the observed figure is within the limit, shown or not."""

    def describe_observed(self) -> str:
        """Describe what was observed: "12 of 400 requests failed"."""

    def describe_regression(self) -> str: ...

    @property
    def is_too_early(self) -> bool:
        """Whether no regression, however large, would have been detected by now."""

    def describe_no_data(self) -> str:
        """Return why the candidate has no figure."""

    def describe_few(self) -> str:
        """Describe how many requests are missing."""

    def describe_no_stable(self) -> str:
        """Return why there is nothing to compare with."""

    def describe_unresolved(self) -> str:
        """Return why no number of requests would decide."""

    def describe_unequal_load(self) -> str: ...


def verdict_of(findings: StepFindings) -> tuple[Verdict, str]:
    """Return the verdict and its message."""
    if findings.by.unknown:
        return Verdict.NOT_ENOUGH, findings.by.unknown
    if findings.is_worse:
        return Verdict.FAILED, findings.describe_regression()
    if undecidable := findings.describe_no_data() or findings.describe_unresolved():
        return Verdict.NOT_ENOUGH, undecidable
    unequal = findings.describe_unequal_load()
    if unequal and not findings.describe_few():
        return Verdict.NOT_COMPARABLE, unequal
    if findings.is_shown_within:
        return Verdict.PASSED, f"shown to be within the limit; {findings.describe_observed()}"
    return _without_proof(findings)


def _without_proof(findings: StepFindings) -> tuple[Verdict, str]:
    if missing := findings.describe_few() or findings.describe_no_stable():
        return Verdict.NOT_ENOUGH, missing
    observed = findings.describe_observed()
    if not findings.is_within:
        return (
            Verdict.NOT_ENOUGH,
            f"above the limit, but not statistically significant; {observed}",
        )
    if findings.by.is_strict:
        return Verdict.NOT_ENOUGH, f"not yet shown to be within the limit; {observed}"
    if findings.is_too_early:
        return Verdict.PASSED, f"{observed}; too few to judge yet"
    return Verdict.PASSED, f"no regression detected; {observed}"
