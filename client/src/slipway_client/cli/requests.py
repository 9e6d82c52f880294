"""deploy, canary, promote-environment, approvals, approve."""

from __future__ import annotations

import argparse
from typing import Any

from slipway_client import settings
from slipway_client.cli import exit_codes, formatting
from slipway_client.cli.context import Context
from slipway_client.resources.deployments import DEFAULT_STEPS
from slipway_client.types import Change, ChangePreflight, Cost, Preflight, Promotion, Version

_SET_HELP = "a setting of the spec, for example --set memory=8Gi --set scaling.kind=hpa"


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    _add_deploy(commands)
    _add_canary(commands)
    _add_promote(commands)
    command = commands.add_parser("approvals", help="list requests that wait for you")
    command.add_argument("--team", default="", help="default: all of yours")
    command.set_defaults(run=list_waiting)
    command = commands.add_parser("approve", help="approve a change request")
    command.add_argument("change", type=int, help="its number")
    command.add_argument("--comment", default="")
    command.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    command.set_defaults(run=approve)


def _add_deploy(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser("deploy", help="request a new deployment")
    command.add_argument("version", help="team/model, team/model:3 or team/model@champion")
    command.add_argument("--name", default="", help="of the deployment; default: the model's")
    command.add_argument("--cluster", default="", help="needed if there are several")
    command.add_argument("--environment", default="production")
    command.add_argument("--engine", default="kserve-triton")
    command.add_argument("--instance-type", default="", help="of the nodes, for example g5.xlarge")
    command.add_argument("--spec", default="", metavar="FILE", help="settings as JSON")
    command.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help=_SET_HELP)
    command.add_argument(
        "--open",
        action="store_true",
        help="serve anyone who reaches the gateway; default: callers with a key",
    )
    command.set_defaults(run=deploy)
    _add_request_options(command)


def _add_canary(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser("canary", help="request a canary of another version")
    command.add_argument("deployment", help="team/deployment")
    command.add_argument("version", help="team/model:3 or team/model@challenger")
    command.add_argument(
        "--steps",
        default="",
        metavar="WEIGHT:SOAK[:REQUESTS],…",
        help="for example 5:10m:100,25:10m,50:1h; default: 5, 25 and 50%%, 10 minutes each",
    )
    command.set_defaults(run=canary)
    _add_request_options(command)


def _add_promote(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "promote-environment", help="request what serves here for the next environment"
    )
    command.add_argument("deployment", help="team/deployment, for example in staging")
    command.add_argument(
        "--name", default="", help="of the deployment there; default: the only one of the model"
    )
    command.set_defaults(run=promote)
    _add_request_options(command)


def _add_request_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--comment", default="", help="for the approvers")
    command.add_argument("--check", action="store_true", help="show checks and cost, no request")
    command.add_argument("--wait", action="store_true", help="until it is approved and done")
    command.add_argument("--timeout", type=float, default=900.0, metavar="SECONDS")


def deploy(context: Context, options: argparse.Namespace) -> int:
    client = context.client
    version = client.versions.get(options.version)
    draft = {
        "version": version.id,
        "cluster": client.account.cluster(options.cluster).id,
        "name": options.name or version.model,
        "spec": _spec(options),
        "environment": options.environment,
    }
    if options.check:
        return _show_preflight(context, client.deployments.check(**draft))
    change = client.deployments.request(**draft, comment=options.comment)
    return _finish(context, options, change)


def canary(context: Context, options: argparse.Namespace) -> int:
    client = context.client
    deployment = client.deployments.get(options.deployment)
    version: Version = client.versions.get(options.version)
    steps = settings.steps(options.steps) if options.steps else list(DEFAULT_STEPS)
    if options.check:
        preflight = client.deployments.check_change(
            deployment.id, "canary", version_id=version.id, steps=steps
        )
        return _show_preflight(context, preflight)
    change = client.deployments.canary(
        deployment.id, version.id, steps=steps, comment=options.comment
    )
    return _finish(context, options, change)


def promote(context: Context, options: argparse.Namespace) -> int:
    client = context.client
    deployment = client.deployments.get(options.deployment)
    if options.check:
        return _show_promotion(context, client.deployments.promotion(deployment.id))
    change = client.deployments.promote(deployment.id, name=options.name, comment=options.comment)
    return _finish(context, options, change)


def list_waiting(context: Context, options: argparse.Namespace) -> None:
    requests = list(context.client.changes.waiting(team=options.team))
    rows = [(row.kind, str(row.id), row.title, row.detail, row.requester) for row in requests]
    context.table(requests, ("kind", "id", "request", "detail", "requester"), rows)


def approve(context: Context, options: argparse.Namespace) -> None:
    """Approve a request. The approval names the evidence that was shown here."""
    change = context.client.changes.get(options.change)
    revision = f" of {change.revision.version}" if change.revision else ""
    text = f"{change.kind}{revision} as {change.team}/{change.deployment} for {change.requester}"
    if change.opens_address:
        text = f"{text}, open to anyone who reaches the gateway"
    for line in formatting.preflight(change.checks):
        context.note(line)
    context.confirm(f"Approve {text}?", is_confirmed=options.yes)
    approved = context.client.changes.approve(change, comment=options.comment)
    context.show(approved, f"Approved: {text}. It is {approved.state}.")


def _spec(options: argparse.Namespace) -> dict[str, Any]:
    given = settings.json_file(options.spec) if options.spec else {}
    spec = {"engine": options.engine, **given}
    if options.instance_type:
        spec["instance_type"] = options.instance_type
    if options.open:
        spec = settings.merge_settings(spec, {"network": {"access": "open"}})
    return settings.merge_settings(spec, settings.settings(options.set))


def _show_preflight(context: Context, preflight: Preflight | ChangePreflight) -> int:
    lines = formatting.preflight(preflight.checks)
    lines.append(f"Cost per hour: {_per_hour(preflight.cost)}")
    lines.append("Can be requested." if preflight.can_submit else "Cannot be requested yet.")
    context.show(preflight, *lines)
    return exit_codes.OK if preflight.can_submit else exit_codes.FAILED


def _per_hour(cost: Cost | None) -> str:
    """Format a cost per hour: with several instance types, from the cheapest to the most expensive."""
    if cost is None or cost.per_hour is None:
        return "unknown"
    least = cost.cheapest_per_hour
    return f"${cost.per_hour}" if least is None else f"${least} to ${cost.per_hour}"


def _show_promotion(context: Context, found: Promotion) -> int:
    lines = formatting.preflight(found.checks)
    if found.evidence is not None:
        shown = found.evidence
        lines.insert(0, f"{shown.deployment} r{shown.revision_number}: {shown.progress}")
        lines.insert(1, f"Golden requests: {shown.golden_detail}")
    lines.append("Can be requested." if found.is_possible else "Cannot be requested yet.")
    context.show(found, *lines)
    return exit_codes.OK if found.is_possible else exit_codes.FAILED


def _finish(context: Context, options: argparse.Namespace, change: Change) -> int:
    if options.wait:
        context.note(_progress(change))
        change = context.client.changes.wait(
            change.id, seconds=options.timeout, on_change=lambda now: context.note(_progress(now))
        )
    approvers = ", ".join(rule.approvers for rule in change.required_approvals if rule.missing)
    waiting = f" Waiting for: {approvers}." if approvers else ""
    name = f"{change.team}/{change.deployment}"
    context.show(
        change,
        f"Change request {change.id} ({change.kind} of {name}) is {change.state}.{waiting}",
        f"Follow it: slipway status {name} --watch",
    )
    return exit_codes.OK


def _progress(change: Change) -> str:
    return f"Change request {change.id} is {change.state}."
