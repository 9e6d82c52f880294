"""import."""

from __future__ import annotations

import argparse

from slipway_client import settings
from slipway_client.cli import exit_codes, formatting
from slipway_client.cli.context import Context
from slipway_client.types import Import


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "import",
        help="copy a model from where it is into a new version",
        description="Copy a model from a bucket, a URL, MLflow or Hugging Face into a new version. The "
        "portal copies it: nothing passes through this machine.",
    )
    command.add_argument(
        "address",
        help="s3://bucket/prefix/, https://host/model.onnx, models:/name/3, models:/name@alias or "
        "hf://organisation/model:commit",
    )
    command.add_argument("model", help="team/model; created with its first version")
    command.add_argument("--server", default="", help="the MLflow server, where there are several")
    command.add_argument(
        "--metadata", action="append", default=[], metavar="NAME=VALUE", help="accuracy=0.94"
    )
    command.add_argument("--no-wait", action="store_true", help="start it and return")
    command.add_argument("--timeout", type=float, default=3600.0, metavar="SECONDS")
    command.set_defaults(run=import_model)


def import_model(context: Context, options: argparse.Namespace) -> int:
    client = context.client
    job = client.imports.start(
        options.address,
        options.model,
        server=options.server,
        metadata=settings.settings(options.metadata),
    )
    if options.no_wait:
        context.show(job, f"The {job} has started.")
        return exit_codes.OK
    client.imports.wait(
        job.id, seconds=options.timeout, on_change=lambda now: context.note(_progress(now))
    )
    version = client.versions.wait(job.version_id, seconds=options.timeout)
    context.show(
        version,
        f"{version} is {version.state}.",
        *formatting.checks(version.checks),
        f"Deploy it: slipway deploy {version}",
    )
    return exit_codes.OK


def _progress(job: Import) -> str:
    if not job.files_count:
        return f"Listing {job.address}. {job.error}".strip()
    sizes = f"{formatting.size(job.copied_bytes)} of {formatting.size(job.total_bytes)}"
    return f"{job.files_done} of {job.files_count} files, {sizes}. {job.error}".strip()
