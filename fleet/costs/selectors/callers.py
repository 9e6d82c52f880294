"""The requests of callers, and their part of the ledger's sealed hours."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from fleet.costs.domain import callers as domain
from fleet.costs.domain.callers import Hour, Rest
from fleet.costs.selectors import hours
from fleet.costs.selectors.hours import ChargedHour
from fleet.models import CallerHour
from portal.core.money import MICRO, split_exactly

_ZERO = Decimal(0)
_REST_LABELS = {
    Rest.IDLE: "hours without a request",
    Rest.WITHOUT_KEY: "requests without a caller's key",
    Rest.NOT_KNOWN: "hours in which callers were not counted",
}


@dataclass(frozen=True, slots=True)
class CallerCost:
    """The cost of a deployment's caller, or of what nobody is charged for (`rest`, without a caller).

    `requests` counts all hours, including hours that are not sealed yet; None for what is no caller. `cents_amount`
    is rounded so that the rows of a deployment sum to its rounded total.
    """

    team_slug: str
    deployment: str
    caller: str
    rest: Rest | None
    requests: int | None
    amount: Decimal
    cents_amount: Decimal
    # Of the deployment's cost, 0..1; None without a cost.
    ratio: float | None

    @property
    def rest_label(self) -> str:
        """The label of what nobody is charged for. Empty for a caller."""
        return _REST_LABELS[self.rest] if self.rest else ""


@dataclass(frozen=True, slots=True)
class Total:
    """The total of the rows. `cents_amount` is the sum of the rows as they are shown."""

    requests: int
    cents_amount: Decimal


@dataclass(frozen=True, slots=True)
class CountedHour:
    """An hour of a deployment in which requests were counted. `callers` has who sent something. `is_counted`: for
    some time of it the counters were read.
    """

    callers: Mapping[str, int]
    is_counted: bool


NOT_COUNTED = CountedHour({}, is_counted=False)
Counted = Mapping[tuple[str, datetime], CountedHour]


def rows(
    *,
    team_slug: str,
    start: datetime,
    end: datetime,
    deployment: str = "",
) -> list[CallerCost]:
    """Return the cost rows of hours that start in [start, end), by deployment: callers by cost, then the rest. A
    deployment without counted callers in the period is left out. Takes four queries for any number of rows.
    """
    counted = read_counted_hours(
        team_slug=team_slug,
        start=start,
        end=end,
        deployment=deployment,
    )
    names = sorted({name for name, _ in counted})
    if not names:
        return []
    charged = hours.read_charged_hours(team_slug=team_slug, start=start, end=end, deployments=names)
    requests: dict[str, dict[str, int]] = {name: defaultdict(int) for name in names}
    for (name, _), hour in counted.items():
        for caller, count in hour.callers.items():
            requests[name][caller] += count
    return [
        row
        for name in names
        for row in _rows_of(team_slug, name, charged.get(name, []), counted, requests[name])
    ]


def sum_rows(rows: Collection[CallerCost]) -> Total:
    return Total(
        requests=sum(row.requests or 0 for row in rows),
        cents_amount=sum((row.cents_amount for row in rows), _ZERO),
    )


def read_counted_hours(
    *,
    team_slug: str,
    start: datetime,
    end: datetime,
    deployment: str = "",
) -> Counted:
    """Return the counted requests by deployment and hour. An empty `deployment` means all of the team's."""
    rows = CallerHour.objects.filter(team_slug=team_slug, hour__gte=start, hour__lt=end)
    if deployment:
        rows = rows.filter(deployment=deployment)
    sent: dict[tuple[str, datetime], dict[str, int]] = {}
    observed = set()
    names = ("deployment", "hour", "caller", "requests", "observed_ms")
    for name, hour, caller, requests, observed_ms in rows.order_by().values_list(*names):
        of_hour = sent.setdefault((name, hour), {})
        if caller and requests:
            of_hour[caller] = requests
        if observed_ms:
            observed.add((name, hour))
    return {key: CountedHour(of_hour, is_counted=key in observed) for key, of_hour in sent.items()}


def join_hour(charged: ChargedHour, counted: CountedHour) -> Hour:
    use = charged.use
    return Hour(
        # SQLite adds decimals as floating point.
        cost_amount=charged.cost_amount.quantize(MICRO),
        callers=counted.callers,
        served=use.requests if use.observed_ms or use.requests else None,
        is_counted=counted.is_counted,
    )


def _rows_of(
    team_slug: str,
    name: str,
    charged: Collection[ChargedHour],
    counted: Counted,
    requests: Mapping[str, int],
) -> list[CallerCost]:
    split_hours = (
        join_hour(hour, counted.get((name, hour.start), NOT_COUNTED)) for hour in charged
    )
    bill = domain.bill(split_hours, split_exactly)
    callers = {caller: bill.callers.get(caller, _ZERO) for caller in requests}
    ordered = sorted(callers, key=lambda caller: (-callers[caller], -requests[caller], caller))
    parts: list[tuple[str, Rest | None, Decimal]] = [
        *((caller, None, callers[caller]) for caller in ordered),
        *(("", rest, bill.rest[rest]) for rest in Rest if rest in bill.rest),
    ]
    total = bill.amount
    cents = domain.in_cents([amount for _, _, amount in parts])
    return [
        CallerCost(
            team_slug=team_slug,
            deployment=name,
            caller=caller,
            rest=rest,
            requests=requests[caller] if rest is None else None,
            amount=amount,
            cents_amount=in_cents,
            ratio=float(amount / total) if total else None,
        )
        for (caller, rest, amount), in_cents in zip(parts, cents, strict=True)
    ]
