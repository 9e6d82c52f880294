"""cost."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from decimal import Decimal

from slipway_client.cli import formatting
from slipway_client.cli.context import Context
from slipway_client.errors import InvalidInput
from slipway_client.types import CostRow

_UNIT = 1000


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser("cost", help="show costs of this month, or of a period")
    command.add_argument("--team", default="", help="default: all of yours")
    command.add_argument("--by", default="deployment", help="team, model, deployment, …")
    command.add_argument("--start", default="", help="UTC, for example 2026-11-01")
    command.add_argument("--end", default="", help="UTC, exclusive")
    command.add_argument(
        "--idle",
        default="",
        choices=("separate", "hidden", "by-cost", "by-gpu-time"),
        help="platform admins: idle as a row, left out, or shared by the groups",
    )
    command.set_defaults(run=show_costs)
    command = commands.add_parser("unusual-days", help="days of the last week with unusual costs")
    command.add_argument("--team", default="", help="default: all of yours")
    command.set_defaults(run=show_unusual_days)


def show_costs(context: Context, options: argparse.Namespace) -> None:
    costs = context.client.costs.get(
        team=options.team,
        group_by=options.by,
        start=_time(options.start),
        end=_time(options.end),
        idle=options.idle,
    )
    if context.is_json:
        context.show(costs)
        return
    is_shared = costs.idle_rule.startswith("by-")
    rows = [_row(row.key.name, row, with_idle=is_shared) for row in costs.rows]
    if costs.idle is not None:
        rows.append(_row("Idle", costs.idle))
    rows.append(("Total", _dollars(costs.total_amount), "", ""))
    dollars = "US dollars, with idle" if is_shared else "US dollars"
    columns = (options.by, dollars, "GPU hours", "per 1,000 inferences")
    context.table(costs.rows, columns, rows)


def show_unusual_days(context: Context, options: argparse.Namespace) -> None:
    days = list(context.client.costs.unusual_days(team=options.team))
    rows = [
        (
            day.day.isoformat(),
            f"{day.team_slug or 'not attributed'}/{day.deployment or '*'}",
            _dollars(day.amount),
            _dollars(day.usual_amount),
        )
        for day in days
    ]
    context.table(days, ("day (UTC)", "deployment", "US dollars", "usual"), rows)


def _row(name: str, row: CostRow, *, with_idle: bool = False) -> tuple[str, str, str, str]:
    amount = row.amount + row.idle_amount if with_idle else row.amount
    return (
        name,
        "no price" if row.is_unpriced else _dollars(amount),
        formatting.number(float(row.gpu_hours)),
        _per_thousand(row),
    )


def _per_thousand(row: CostRow) -> str:
    if row.usd_per_1k_inferences_amount is None:
        return "-"
    # Of fewer than one unit it would be the price of inferences that nobody counted.
    is_of_too_few = (row.inferences or 0) < _UNIT
    return "too few" if is_of_too_few else f"{row.usd_per_1k_inferences_amount:.4f}"


def _dollars(amount: Decimal) -> str:
    return f"{amount:,.2f}"


def _time(text: str) -> datetime | None:
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidInput(
            f"{text!r} is not a date. Write 2026-11-01 or 2026-11-01T06:00."
        ) from error
    return at if at.tzinfo else at.replace(tzinfo=UTC)
