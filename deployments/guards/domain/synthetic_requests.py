"""Requests that the portal itself sent to a revision, taken off what its counters show.

Golden requests and trials bypass the route, to candidate and stable alike, and Triton counts them
like any other. Left in, they would make an idle candidate appear busy enough to promote, distort
the observed traffic weight, and dilute errors and latency of the side with less traffic.

Only answered ones are taken off: whether a server counted one that it refused is not known, and
taking off too many would hide a failure of a user.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from deployments.guards.domain.counters import Sums

# With fewer of them in an interval its times are the users'; with more they are nobody's.
_MOST_MIXED: Final = 0.05
# Cap for a server that went away before its next reading.
_MOST_OWED: Final = 1000


def without(sums: Sums, owed: int) -> tuple[Sums, int]:
    """Subtract synthetic requests. Return what is left for users, and how many are still to be subtracted.

    One that was answered moments ago may be in the next reading only.
    """
    taken = min(owed, sums.success)
    left = min(_MOST_OWED, owed - taken)
    if not taken:
        return sums, left
    kept = sums.success - taken
    if taken > _MOST_MIXED * sums.success:
        return Sums(kept, sums.failure, untimed=kept, aborted=sums.aborted), left
    share = kept / sums.success
    return replace(
        sums,
        success=kept,
        inferences=round(sums.inferences * share),
        duration_us=round(sums.duration_us * share),
        queue_us=round(sums.queue_us * share),
        busy_ms=round(sums.busy_ms * share),
        tokens=round(sums.tokens * share),
        first_tokens=round(sums.first_tokens * share),
        first_token_us=round(sums.first_token_us * share),
        later_tokens=round(sums.later_tokens * share),
        later_token_us=round(sums.later_token_us * share),
    ), left
