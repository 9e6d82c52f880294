"""models, versions."""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path

from slipway_client.cli import formatting
from slipway_client.cli.context import Context
from slipway_client.errors import Failed

_MOST = 50


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser("models", help="list models")
    command.add_argument("--team", default="")
    command.add_argument("--search", default="", help="part of a name")
    command.set_defaults(run=list_models)
    command = commands.add_parser("versions", help="list the versions of a model, or show one")
    command.add_argument("model", help="team/model, team/model:3 or team/model@champion")
    command.set_defaults(run=show_versions)
    command = commands.add_parser("attest", help="add signatures or provenance to a version")
    command.add_argument("version", help="team/model:3, or team/model for the newest ready one")
    command.add_argument("files", nargs="+", help="Sigstore bundles or DSSE envelopes")
    command.add_argument("--wait", action="store_true", help="until each is verified")
    command.set_defaults(run=attest)


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


def attest(context: Context, options: argparse.Namespace) -> None:
    versions = context.client.versions
    version = versions.get(options.version)
    added = [
        versions.attest(version.id, Path(name).name, Path(name).read_text(encoding="utf-8"))
        for name in options.files
    ]
    if options.wait:
        added = [versions.wait_for_attestation(version.id, one.id) for one in added]
    columns = ("file", "state", "signer", "reason")
    rows = [(one.filename, one.state, one.signer or "", one.reason) for one in added]
    context.table(added, columns, rows)
    if options.wait and any(one.state != "trusted" for one in added):
        raise Failed(f"Not all attestations of {version} are trusted.")
