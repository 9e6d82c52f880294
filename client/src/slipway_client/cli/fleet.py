"""nodes, node, fleet-actions, fleet-action."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from slipway_client.cli.context import Context
from slipway_client.errors import InvalidInput
from slipway_client.types import Affected, FleetActionDetails, Node

_STATES = ("submitted", "approved", "applying", "done", "failed", "rejected", "withdrawn")
_OTHERS = ("expired", "canceling", "canceled")


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser("nodes", help="list GPU nodes and their notices")
    command.add_argument("--cluster", default="", help="default: all")
    command.set_defaults(run=show_nodes)
    _add_node(commands)
    command = commands.add_parser("fleet-actions", help="list requested actions on nodes and pools")
    command.add_argument("--cluster", default="", help="default: all")
    command.add_argument("--state", default="", choices=(*_STATES, *_OTHERS))
    command.set_defaults(run=show_actions)
    _add_action(commands)


def _add_node(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser("node", help="request to cordon, uncordon or drain a node")
    command.add_argument("what", choices=("cordon", "uncordon", "drain"))
    command.add_argument("node", help="its name")
    command.add_argument("--cluster", default="", help="where several have a node of the name")
    command.add_argument("--comment", default="", help="for the approver")
    command.add_argument(
        "--deadline-minutes", type=int, metavar="N", help="drain: it fails when pods remain then"
    )
    command.add_argument(
        "--evict-unmanaged", action="store_true", help="drain: also pods without a controller"
    )
    command.add_argument("--wait", action="store_true", help="until it is approved and done")
    command.add_argument("--timeout", type=float, default=3600.0, metavar="SECONDS")
    command.set_defaults(run=request)


def _add_action(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser("fleet-action", help="show a fleet action, or decide about it")
    command.add_argument("what", choices=tuple(_DECISIONS))
    command.add_argument("action", type=int, help="its number")
    command.add_argument("--comment", default="", help="needed to reject")
    command.add_argument("--yes", action="store_true", help="approve: do not ask for confirmation")
    command.set_defaults(run=decide)


def show_nodes(context: Context, options: argparse.Namespace) -> None:
    client = context.client
    cluster = client.account.cluster(options.cluster).id if options.cluster else None
    nodes = list(client.fleet.nodes(cluster=cluster))
    rows = [
        (
            node.name,
            node.cluster_name,
            f"{node.gpu_count} x {node.gpu_product or 'GPU'}",
            node.capacity_type,
            "not known" if node.usd_per_hour_amount is None else f"{node.usd_per_hour_amount:.4f}",
            ", ".join(_state(node)),
        )
        for node in nodes
    ]
    context.table(nodes, ("node", "cluster", "GPUs", "capacity", "$/h", "state"), rows)


def request(context: Context, options: argparse.Namespace) -> None:
    fleet = context.client.fleet
    is_drain = options.what == "drain"
    if not is_drain and (options.deadline_minutes is not None or options.evict_unmanaged):
        raise InvalidInput("--deadline-minutes and --evict-unmanaged are for drain.")
    node = fleet.node(options.node, cluster=options.cluster)
    if is_drain:
        action = fleet.drain(
            node.id,
            deadline_minutes=options.deadline_minutes,
            evict_unmanaged=options.evict_unmanaged,
            comment=options.comment,
        )
    else:
        run = fleet.cordon if options.what == "cordon" else fleet.uncordon
        action = run(node.id, comment=options.comment)
    if options.wait:
        context.note(_title(action))
        action = fleet.wait(
            action.id, seconds=options.timeout, on_change=lambda now: context.note(_title(now))
        )
    context.show(action, _title(action), *_evidence(action))


def show_actions(context: Context, options: argparse.Namespace) -> None:
    client = context.client
    cluster = client.account.cluster(options.cluster).id if options.cluster else None
    actions = list(client.fleet.actions(state=options.state, cluster=cluster))
    rows = [
        (
            str(action.id),
            action.state,
            action.kind,
            action.target,
            action.cluster,
            action.requester,
            f"{action.created_at:%Y-%m-%d %H:%M}",
            action.state_reason,
        )
        for action in actions
    ]
    columns = ("id", "state", "kind", "target", "cluster", "by", "requested (UTC)", "reason")
    context.table(actions, columns, rows)


def decide(context: Context, options: argparse.Namespace) -> None:
    action = _DECISIONS[options.what](context, options)
    context.show(action, _title(action), *(_evidence(action) if options.what == "show" else ()))


def _show(context: Context, options: argparse.Namespace) -> FleetActionDetails:
    return context.client.fleet.action(options.action)


def _approve(context: Context, options: argparse.Namespace) -> FleetActionDetails:
    """Approve a request. The approval names the evidence that was shown here."""
    action = context.client.fleet.action(options.action)
    for line in _evidence(action):
        context.note(line)
    question = f"Approve {action.kind} of {action.target} for {action.requester}?"
    context.confirm(question, is_confirmed=options.yes)
    return context.client.fleet.approve(action, comment=options.comment)


def _reject(context: Context, options: argparse.Namespace) -> FleetActionDetails:
    return context.client.fleet.reject(options.action, comment=options.comment)


def _withdraw(context: Context, options: argparse.Namespace) -> FleetActionDetails:
    return context.client.fleet.withdraw(options.action, reason=options.comment)


def _cancel(context: Context, options: argparse.Namespace) -> FleetActionDetails:
    return context.client.fleet.cancel(options.action, reason=options.comment)


_DECISIONS = {
    "show": _show,
    "approve": _approve,
    "reject": _reject,
    "withdraw": _withdraw,
    "cancel": _cancel,
}


def _state(node: Node) -> Sequence[str]:
    ready = "ready" if node.is_ready else "not ready"
    cordoned = () if node.is_schedulable else ("cordoned",)
    return (ready, *cordoned, *(notice.title for notice in node.notices))


def _title(action: FleetActionDetails) -> str:
    reason = f": {action.state_reason}" if action.state_reason else ""
    name = f"{action.kind} of {action.target} ({action.cluster})"
    return f"Fleet action {action.id}, {name}, is {action.state}{reason}"


def _evidence(action: FleetActionDetails) -> list[str]:
    """Return the lines about what an action changes, whose pods move, and what blocks them."""
    shown = action.evidence
    lines = [f"  {one.field}: {one.before} → {one.after}" for one in shown.changes]
    lines += [f"  {_affected(one)}" for one in shown.deployments]
    lines += [
        f"  Budget {one.namespace}/{one.name}: {one.hold}, {one.pods} pods" for one in shown.budgets
    ]
    lines += [f"  ! {warning}" for warning in shown.warnings]
    if shown.usd_per_month_change:
        lines.append(f"  Cost of a month: {shown.usd_per_month_change:+,.2f} dollars")
    return lines


def _affected(one: Affected) -> str:
    name = f"{one.team_slug}/{one.deployment}" if one.deployment else "another team's deployment"
    room = f", {one.without_room} without room elsewhere" if one.without_room else ""
    return f"{name}: {one.pods} pods, {one.gpus} GPUs{room}"
