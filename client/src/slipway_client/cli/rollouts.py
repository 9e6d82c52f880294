"""promote, abort, and following a rollout."""

from __future__ import annotations

import argparse

from slipway_client.cli import exit_codes, formatting
from slipway_client.cli.context import Context
from slipway_client.errors import Failed
from slipway_client.types import Rollout, RolloutEvent

_VERDICTS = {"pass": True, "fail": False}


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser("promote", help="promote the candidate to the next step")
    command.add_argument("deployment", help="team/deployment")
    command.add_argument("--fully", action="store_true", help="to 100%% now, without the steps")
    command.add_argument("--comment", default="", help="for the timeline and the audit trail")
    command.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    command.set_defaults(run=promote)
    command = commands.add_parser("abort", help="route all requests to the stable revision again")
    command.add_argument("deployment", help="team/deployment")
    command.add_argument("--reason", default="")
    command.set_defaults(run=abort)


def promote(context: Context, options: argparse.Namespace) -> None:
    """Promote a rollout, confirming the evidence that is shown here. The portal refuses if it changed meanwhile."""
    rollout = context.client.rollouts.get(_open_rollout(context, options.deployment))
    for line in _lines(rollout):
        context.note(line)
    target = 100 if options.fully else rollout.next_weight
    question = f"Promote {rollout.candidate} from {rollout.requested_weight}% to {target}%?"
    context.confirm(question, is_confirmed=options.yes)
    rollouts = context.client.rollouts
    run = rollouts.promote_fully if options.fully else rollouts.promote
    promoted = run(rollout, comment=options.comment)
    context.show(promoted, _title(promoted))


def abort(context: Context, options: argparse.Namespace) -> None:
    """Abort a rollout without asking for confirmation: it is the way back to safety."""
    rollout_id = _open_rollout(context, options.deployment)
    aborted = context.client.rollouts.abort(rollout_id, reason=options.reason)
    context.show(aborted, _title(aborted))


def follow(context: Context, rollout_id: int) -> int:
    """Print events and changes of the evidence until the end; with --json one object a line."""
    last: Rollout | None = None
    for item in context.client.rollouts.watch(rollout_id):
        if isinstance(item, RolloutEvent):
            _show_event(context, item)
        elif last is None or item != last:
            context.show(item, *_lines(item))
            last = item
    ended = context.client.rollouts.get(rollout_id)
    context.show(ended, _title(ended))
    return exit_codes.OK if ended.phase == "completed" else exit_codes.FAILED


def _open_rollout(context: Context, name: str) -> int:
    deployment = context.client.deployments.get(name)
    if deployment.rollout_id is None:
        raise Failed(f"{deployment} has no open rollout.")
    return deployment.rollout_id


def _show_event(context: Context, event: RolloutEvent) -> None:
    actor = f" ({event.actor_name})" if event.actor_name else ""
    context.show(event, f"{event.at:%H:%M:%S} {event.message}{actor}")


def _title(rollout: Rollout) -> str:
    reason = f": {rollout.phase_reason}" if rollout.phase_reason else ""
    return (
        f"Rollout {rollout.id} of {rollout.candidate} is {rollout.phase}{reason} "
        f"({rollout.requested_weight}% of requests)"
    )


def _lines(rollout: Rollout) -> list[str]:
    lines = [_title(rollout)]
    for guard in rollout.guards:
        mark = formatting.mark(_VERDICTS.get(guard.verdict))
        values = f"{guard.candidate or '-'} (stable {guard.stable or '-'}, limit {guard.limit})"
        lines.append(f"  {mark} {guard.guard}: {values} {guard.message}".rstrip())
    if rollout.is_promotable:
        lines.append(f"  Can be promoted to {rollout.next_weight}%: slipway promote")
    elif rollout.promotable_reason != rollout.phase_reason:
        lines.append(f"  {rollout.promotable_reason}")
    return lines
