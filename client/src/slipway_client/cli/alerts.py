"""alerts."""

from __future__ import annotations

import argparse

from slipway_client.cli.context import Context

_STATES = ("open", "silenced", "ended", "all")


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser("alerts", help="list open alerts of your teams, and what to do")
    command.add_argument("--team", default="", help="default: all of yours")
    command.add_argument("--state", default="open", choices=_STATES)
    command.add_argument("--kind", default="", help="queue_depth, slo_burn, budget, …")
    command.set_defaults(run=show_alerts)


def show_alerts(context: Context, options: argparse.Namespace) -> None:
    state = "" if options.state == "all" else options.state
    alerts = list(context.client.alerts.list(team=options.team, state=state, kind=options.kind))
    if context.is_json:
        context.show(alerts)
        return
    rows = [
        (
            str(row.id),
            row.state,
            row.team,
            f"{row.opened_at:%Y-%m-%d %H:%M}",
            row.subject,
            row.message,
        )
        for row in alerts
    ]
    context.table(alerts, ("id", "state", "team", "opened (UTC)", "alert", "message"), rows)
    for row in alerts:
        if row.state == "open" and row.advice:
            context.note(f"{row.id}: {row.advice}")
