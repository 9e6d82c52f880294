"""Print alert rules for the Prometheus of a cluster: model servers, GPUs and the burn rates of its standing targets;
with --portal for the one that scrapes the portal.
"""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

import yaml
from django.core.management.base import BaseCommand, CommandError

from portal.core.errors import NotFound
from portal.monitoring import selectors
from portal.monitoring.rules import catalogue, rule, targets
from portal.monitoring.rules.targets import TargetFacts


def _label(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not (key and separator):
        raise ArgumentTypeError("write a label as key=value: release=prometheus")
    return key, value


class Command(BaseCommand):
    help = __doc__
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        kinds = parser.add_mutually_exclusive_group()
        kinds.add_argument("--cluster", help="also the burn rates of the targets there")
        kinds.add_argument(
            "--portal", action="store_true", help="rules of the portal's own metrics, and no others"
        )
        parser.add_argument(
            "--format",
            choices=["manifest", "file"],
            default="manifest",
            help="a PrometheusRule for the operator, or a file for `rule_files`",
        )
        parser.add_argument("--name", default="slipway", help="of the PrometheusRule")
        parser.add_argument("--namespace", default="monitoring", help="of the PrometheusRule")
        parser.add_argument(
            "--label",
            action="append",
            default=[],
            type=_label,
            metavar="KEY=VALUE",
            help="by which Prometheus selects rules",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["portal"]:
            groups = catalogue.portal_groups()
        else:
            groups = catalogue.groups(self._targets(options["cluster"]))
        if options["format"] == "file":
            made = rule.rule_file(groups)
        else:
            made = rule.manifest(
                groups,
                name=options["name"],
                namespace=options["namespace"],
                labels=dict(options["label"]),
            )
        self.stdout.write(yaml.safe_dump(made, sort_keys=False, width=10_000), ending="")

    def _targets(self, cluster: str | None) -> list[TargetFacts]:
        """Return the SLOs of the cluster, and name those without a rule on the standard error."""
        if not cluster:
            return []
        try:
            found = selectors.list_targets(cluster)
        except NotFound as error:
            raise CommandError(error.message) from error
        for facts in found:
            problem = targets.problem_with(facts)
            if problem:
                self.stderr.write(f"No rule for {facts}: {problem}.")
        return found
