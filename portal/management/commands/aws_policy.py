"""Print the AWS policy that the portal's role, or a team's serving role, needs: all that the code calls, and no more."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from portal.doctor import aws_policy


class Command(BaseCommand):
    help = __doc__
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--bucket", default=settings.SLIPWAY_S3_BUCKET)
        kinds = parser.add_subparsers(dest="kind", required=True)
        portal = kinds.add_parser("portal", help="of the portal's pods")
        portal.add_argument(
            "--eks", action="append", default=[], metavar="ARN", help="of a cluster"
        )
        portal.add_argument(
            "--assume", action="append", default=[], metavar="ARN", help="of a role of a cluster"
        )
        portal.add_argument(
            "--simulate", action="append", default=[], metavar="ARN",
            help="of its own role and of the teams' serving roles, whose access is then checked",
        )  # fmt: skip
        portal.add_argument(
            "--import", action="append", default=[], metavar="BUCKET", dest="imports",
            help="a bucket that models are imported from",
        )  # fmt: skip
        portal.add_argument(
            "--prometheus", action="append", default=[], metavar="ARN", help="of a workspace"
        )
        serving = kinds.add_parser("serving", help="of the pods that serve a team's models")
        serving.add_argument("team")

    def handle(self, *args: Any, kind: str, bucket: str, **options: Any) -> None:
        if kind == "serving":
            policy = aws_policy.serving(bucket=bucket, team=options["team"])
        else:
            policy = aws_policy.portal(
                bucket=bucket,
                eks=options["eks"],
                assumed=options["assume"],
                simulated=options["simulate"],
                imports=options["imports"],
                prometheus=options["prometheus"],
            )
        self.stdout.write(json.dumps(policy, indent=2))
