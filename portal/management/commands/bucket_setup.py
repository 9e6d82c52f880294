"""`manage.py bucket_setup`: sets up the artifact bucket, then reports its settings. Repeatable."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from deployments.registry.gateways import bucket_setup, object_store
from deployments.registry.gateways.bucket_setup import BucketFinding


class Command(BaseCommand):
    help = (
        "Create the bucket if needed; turn on versions, CORS, the clean-up of uploads and Object "
        "Lock; let only the portal write where serving reads. Then check all of it."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--origin",
            action="append",
            required=True,
            help="where browsers see the portal, for example https://slipway.example.org; repeatable",
        )
        parser.add_argument(
            "--writer",
            action="append",
            default=[],
            help="ARN of a role or user of the portal itself, which alone may write; repeatable",
        )
        parser.add_argument(
            "--check", action="store_true", help="change nothing; fail when a setting is missing"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        store = object_store.s3_store()
        origins, writers = options["origin"], options["writer"]
        refused: list[BucketFinding] = []
        if not options["check"]:
            bucket_setup.prepare(store, region=settings.SLIPWAY_S3_REGION, origins=origins)
            refused = bucket_setup.protect(store, writers=writers)
        findings = bucket_setup.check(store, origins=origins, writers=writers)
        for finding in [*refused, *findings]:
            self.stdout.write(f"{_MARKS[finding.ok]} {finding.name}: {finding.detail}")
        wrong = [finding.name for finding in findings if finding.ok is False]
        if options["check"] and wrong:
            raise CommandError(f"Bucket {store.bucket}: {', '.join(wrong)} not set up correctly.")
        self.stdout.write(f"Bucket {store.bucket} is ready for uploads.")


_MARKS = {True: "ok     ", False: "MISSING", None: "-      "}
