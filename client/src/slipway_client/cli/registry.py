"""models, versions."""

from __future__ import annotations

import argparse
import itertools

from slipway_client.cli import formatting
from slipway_client.cli.context import Context

_MOST = 50


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser("models", help="list models")
    command.add_argument("--team", default="")
    command.add_argument("--search", default="", help="part of a name")
    command.set_defaults(run=list_models)
    command = commands.add_parser("versions", help="list the versions of a model, or show one")
    command.add_argument("model", help="team/model, team/model:3 or team/model@champion")
    command.set_defaults(run=show_versions)


def list_models(context: Context, options: argparse.Namespace) -> None:
    models = list(context.client.models.list(team=options.team, search=options.search))
    rows = [
        (str(model), " ".join(f"{alias.name}={alias.version}" for alias in model.aliases))
        for model in models
    ]
    context.table(models, ("model", "aliases"), rows)


def show_versions(context: Context, options: argparse.Namespace) -> None:
    if ":" in options.model or "@" in options.model:
        version = context.client.versions.get(options.model)
        title = f"{version} is {version.state} {version.state_reason}".strip()
        context.show(version, title, *formatting.checks(version.checks))
        return
    versions = list(itertools.islice(context.client.versions.list(options.model), _MOST))
    rows = [
        (
            str(version.number),
            version.state,
            version.format,
            formatting.size(version.size_bytes or version.declared_size_bytes),
            " ".join(version.aliases),
            f"{version.created_at:%Y-%m-%d %H:%M}",
            version.created_by,
        )
        for version in versions
    ]
    columns = ("version", "state", "format", "size", "aliases", "created", "by")
    context.table(versions, columns, rows)
