"""status."""

from __future__ import annotations

import argparse

from slipway_client.cli import exit_codes, formatting
from slipway_client.cli.context import Context
from slipway_client.cli.rollouts import follow
from slipway_client.types import Deployment, DeploymentStats


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser("status", help="show deployments, or follow one")
    command.add_argument("deployment", nargs="?", default="", help="team/deployment; default: all")
    command.add_argument("--team", default="")
    command.add_argument("--watch", action="store_true", help="follow it until it is ready")
    command.add_argument("--timeout", type=float, default=900.0, metavar="SECONDS")
    command.set_defaults(run=show_status)


def show_status(context: Context, options: argparse.Namespace) -> int:
    if not options.deployment:
        _show_all(context, team=options.team)
        return exit_codes.OK
    deployment = context.client.deployments.get(options.deployment)
    if not options.watch:
        _show(context, deployment)
        return exit_codes.OK
    if deployment.rollout_id is not None:
        return follow(context, deployment.rollout_id)
    deployment = context.client.deployments.wait_until_ready(
        deployment.id,
        seconds=options.timeout,
        on_change=lambda now: context.note(_describe(now)),
    )
    _show(context, deployment)
    return exit_codes.OK


def _show_all(context: Context, *, team: str) -> None:
    deployments = list(context.client.deployments.list(team=team))
    rows = [
        (
            str(deployment),
            deployment.state,
            deployment.desired.stable.version if deployment.desired.stable else "-",
            deployment.environment,
            deployment.cluster,
            f"rollout {deployment.rollout_id}" if deployment.rollout_id else "",
        )
        for deployment in deployments
    ]
    columns = ("deployment", "state", "version", "environment", "cluster", "")
    context.table(deployments, columns, rows)


def _show(context: Context, deployment: Deployment) -> None:
    stats = context.client.deployments.stats(deployment.id)
    if context.is_json:
        context.write_json({**deployment.raw, "stats": stats.raw})
        return
    context.show(deployment, *_lines(deployment, stats))


def _lines(deployment: Deployment, stats: DeploymentStats) -> list[str]:
    lines = [_describe(deployment), f"URL: {deployment.url}"]
    desired = deployment.desired
    if desired.stable:
        lines.append(f"Stable: {desired.stable.version} (revision {desired.stable.number})")
    if desired.candidate:
        candidate = f"{desired.candidate.version} (revision {desired.candidate.number})"
        lines.append(f"Candidate: {candidate}, {desired.candidate_weight}% of requests")
    lines.append(f"Last {stats.seconds} s: {formatting.stats(stats.total)}")
    if deployment.rollout_id:
        lines.append(f"Rollout {deployment.rollout_id}: slipway status {deployment} --watch")
    return lines


def _describe(deployment: Deployment) -> str:
    reason = f": {deployment.state_reason}" if deployment.state_reason else ""
    return f"{deployment} is {deployment.state}{reason}"
