"""batch, batch-jobs, batch-download, cancel-batch, resume-batch, approve-batch, reject-batch."""

from __future__ import annotations

import argparse

from slipway_client.cli import exit_codes
from slipway_client.cli.context import Context
from slipway_client.cli.push import Bars
from slipway_client.types import BatchEstimate, BatchJob, BatchJobDetails, BatchPrice, BatchQueue

_NUMBERS = (
    *("workers", "requests", "hours", "error-limit"),
    *("tries", "idle-seconds", "messages-per-worker", "claim-memory-gib"),
)
_TEXTS = (
    *("gpu-resource", "capacity", "cpu", "memory", "queue"),
    *("consumer-group", "dead-letters", "secret", "claim-product", "claim-tolerations"),
)
_ADDRESSES = ("s3://", "redis://", "rediss://", "https://", "http://", "kafka://")


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "batch",
        help="score a file of rows with a version",
        description="Score each row of a file in S3 with a model version, on spot nodes, and wait.",
    )
    command.add_argument("version", help="team/model:number")
    command.add_argument(
        "input",
        help="a .jsonl or .csv file of yours, s3://bucket/rows.jsonl, or a prefix that ends with /; or a queue that is "
        "drained: redis://host:port/STREAM, the URL of a queue of SQS, or kafka://host:port/TOPIC",
    )
    command.add_argument(
        "output",
        nargs="?",
        default="",
        help="an empty prefix: s3://bucket/batch/TEAM/NAME/; of a stream of Redis also another one of its server. "
        "Default: scores/NAME/ in the team's area",
    )
    command.add_argument("--name", required=True, help="of the job, unique in the team")
    command.add_argument("--cluster", required=True)
    command.add_argument("--instance-type", required=True)
    for name in _NUMBERS:
        command.add_argument(f"--{name}", type=int)
    for name in _TEXTS:
        command.add_argument(f"--{name}")
    command.add_argument(
        "--device-claims", action="store_true", help="GPUs by ResourceClaim, of a DRA driver"
    )
    command.add_argument("--no-wait", action="store_true", help="start it and return")
    command.add_argument("--timeout", type=float, default=86_400.0, metavar="SECONDS")
    command.set_defaults(run=start)
    command.add_argument("--check", action="store_true", help="a dry run: show what it would cost")
    command = commands.add_parser("batch-jobs", help="list batch jobs of your teams")
    command.add_argument("--team", default="", help="default: all of yours")
    command.add_argument("--state", default="")
    command.set_defaults(run=list_jobs)
    command = commands.add_parser("cancel-batch", help="cancel a batch job; finished parts stay")
    command.add_argument("id", type=int)
    command.set_defaults(run=cancel)
    command = commands.add_parser("resume-batch", help="resume a failed batch job")
    command.add_argument("id", type=int)
    command.set_defaults(run=resume)
    command = commands.add_parser("batch-download", help="the output of a batch job in one file")
    command.add_argument("id", type=int)
    command.add_argument("target", help="a new file, for example scores.jsonl")
    command.set_defaults(run=download)
    _decide(commands)


def _decide(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser("approve-batch", help="approve a batch job above the budget")
    command.add_argument("id", type=int)
    command.add_argument("--comment", default="")
    command.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    command.set_defaults(run=approve)
    command = commands.add_parser("reject-batch", help="reject a batch job above the budget")
    command.add_argument("id", type=int)
    command.add_argument("--comment", required=True, help="what to change")
    command.set_defaults(run=reject)


def start(context: Context, options: argparse.Namespace) -> int:
    team, _, rest = options.version.partition("/")
    model, _, number = rest.partition(":")
    names = [name.replace("-", "_") for name in (*_NUMBERS, *_TEXTS)]
    given = {name: value for name in names if (value := getattr(options, name)) is not None}
    fields = {
        "team": team,
        "name": options.name,
        "model": model,
        "version": number,
        "cluster": options.cluster,
        "input": options.input,
        "output": options.output,
        "instance_type": options.instance_type,
        **given,
        **({"device_claims": True} if options.device_claims else {}),
    }
    if not options.input.startswith(_ADDRESSES):
        fields["input"] = _upload(context, options.input, team)
    if options.check:
        return _show_estimate(context, context.client.batch_jobs.check(**fields))
    job = context.client.batch_jobs.start(**fields)
    # A queue is never done: its job ends with the deadline.
    if not options.no_wait and not job.is_queue:
        job = context.client.batch_jobs.wait(
            job.id, seconds=options.timeout, on_change=lambda now: context.note(_progress(now))
        )
    context.show(job, f"The {job} (id {job.id}) is {job.state}.", _progress(job))
    return exit_codes.OK


def _upload(context: Context, path: str, team: str) -> str:
    with Bars(context) as bars:
        upload = context.client.batch_jobs.upload(path, team, progress=bars)
    context.note(f"{path} is uploaded as {upload.input}.")
    return upload.input


def download(context: Context, options: argparse.Namespace) -> int:
    job = context.client.batch_jobs.get(options.id)
    count = context.client.batch_jobs.download(options.id, options.target)
    if count < job.chunks:
        context.note(f"{count} of {job.chunks} parts are finished; the {job} is {job.state}.")
    context.show(job, f"{count} {'part is' if count == 1 else 'parts are'} in {options.target}.")
    return exit_codes.OK


def _show_estimate(context: Context, estimate: BatchEstimate) -> int:
    decision = f"A lead must approve it. {estimate.why_approval}" if estimate.why_approval else ""
    context.show(
        estimate,
        f"{_price(estimate)}. On spot nodes {_price(estimate.spot)}, on-demand {_price(estimate.on_demand)}.",
        estimate.capacity,
        decision or "It would start at once.",
    )
    return exit_codes.OK


def _price(price: BatchPrice) -> str:
    if price.per_hour is None or price.cost_limit is None:
        return "the price is not known"
    return f"${price.per_hour:,.2f} an hour, at most ${price.cost_limit:,.2f}"


def approve(context: Context, options: argparse.Namespace) -> None:
    job = context.client.batch_jobs.get(options.id)
    context.note(job.state_reason)
    limit = "an unknown cost" if job.cost_limit is None else f"at most ${job.cost_limit:,.2f}"
    text = f"the {job} with {job.version} for {job.requester}, {limit}"
    context.confirm(f"Approve {text}?", is_confirmed=options.yes)
    approved = context.client.batch_jobs.approve(options.id, comment=options.comment)
    context.show(approved, f"Approved: {text}. It is {approved.state}.")


def reject(context: Context, options: argparse.Namespace) -> None:
    job = context.client.batch_jobs.reject(options.id, comment=options.comment)
    context.show(job, f"The {job} is {job.state}.")


def list_jobs(context: Context, options: argparse.Namespace) -> None:
    jobs = list(context.client.batch_jobs.list(team=options.team, state=options.state))
    rows = [
        (str(job.id), job.state, job.team, job.name, job.version, _rows(job), job.output)
        for job in jobs
    ]
    context.table(jobs, ("id", "state", "team", "job", "version", "rows", "output"), rows)


def cancel(context: Context, options: argparse.Namespace) -> None:
    job = context.client.batch_jobs.cancel(options.id)
    context.show(job, f"The {job} is {job.state}.")


def resume(context: Context, options: argparse.Namespace) -> None:
    job = context.client.batch_jobs.resume(options.id)
    context.show(job, f"The {job} is {job.state}.")


def _progress(job: BatchJobDetails) -> str:
    spent = "cost not known" if job.spent is None else f"${job.spent:,.2f} so far"
    done = f"{_rows(job)} rows" if job.queue is None else _messages(job.queue)
    return f"{done}, {spent}. {job.detail or job.state_reason}".strip()


def _messages(queue: BatchQueue) -> str:
    waiting = "not known how many wait" if queue.waiting is None else f"{queue.waiting:,} waiting"
    letters = "dead letter" if queue.dead_letters == 1 else "dead letters"
    return f"{queue.answered:,} answered, {waiting}, {queue.dead_letters:,} {letters}"


def _rows(job: BatchJob) -> str:
    if job.is_queue:
        return f"{job.done_rows:,}"
    total = "?" if job.total_rows is None else f"{job.total_rows:,}"
    return f"{job.done_rows:,} of {total}"
