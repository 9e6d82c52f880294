"""cost."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from decimal import Decimal

from slipway_client.cli import formatting
from slipway_client.cli.context import Context
from slipway_client.errors import InvalidInput
from slipway_client.types import CostRow


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser("cost", help="show costs of this month, or of a period")
    command.add_argument("--team", default="", help="default: all of yours")
    command.add_argument("--by", default="deployment", help="team, model, deployment, …")
    command.add_argument("--start", default="", help="UTC, for example 2026-11-01")
    command.add_argument("--end", default="", help="UTC, exclusive")
    command.set_defaults(run=show_costs)


def show_costs(context: Context, options: argparse.Namespace) -> None:
    costs = context.client.costs.get(
        team=options.team, group_by=options.by, start=_time(options.start), end=_time(options.end)
    )
    if context.is_json:
        context.show(costs)
        return
    rows = [_row(row.key.name, row) for row in costs.rows]
    if costs.idle is not None:
        rows.append(_row("Idle", costs.idle))
    rows.append(("Total", _dollars(costs.total_amount), "", ""))
    columns = (options.by, "US dollars", "GPU hours", "per 1,000 inferences")
    context.table(costs.rows, columns, rows)


def _row(name: str, row: CostRow) -> tuple[str, str, str, str]:
    per_thousand = row.usd_per_1k_inferences_amount
    return (
        name,
        "no price" if row.is_unpriced else _dollars(row.amount),
        formatting.number(float(row.gpu_hours)),
        "-" if per_thousand is None else f"{per_thousand:.4f}",
    )


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
