"""`manage.py prepare_bucket`: makes the artifact bucket fit for uploads. Safe to repeat."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from deployments.gateways import artifacts, bucket_setup


class Command(BaseCommand):
    help = "Create the bucket if needed; turn on versioning, CORS and the clean-up of uploads."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--origin",
            action="append",
            required=True,
            help="where browsers see the portal, for example https://slipway.example.org; repeatable",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        bucket_setup.prepare(
            artifacts.s3_store(), region=settings.SLIPWAY_S3_REGION, origins=options["origin"]
        )
        self.stdout.write(f"Bucket {settings.SLIPWAY_S3_BUCKET} is ready.")
