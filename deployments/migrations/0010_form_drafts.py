"""Forms of new deployments that were not sent yet."""

from __future__ import annotations

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0001_initial"),
        ("deployments", "0009_batch_queue_state"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="FormDraft",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("key", models.CharField(max_length=32)),
                ("fields", models.JSONField(default=dict)),
                ("left_out", models.JSONField(default=list)),
                ("version_label", models.CharField(blank=True, default="", max_length=200)),
                ("changed_at", models.DateTimeField()),
                ("sent_at", models.DateTimeField(null=True)),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="form_drafts",
                        to="accounts.team",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="form_drafts",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["-changed_at", "-pk"],
                "indexes": [models.Index(fields=["changed_at"], name="form_draft_age")],
                "constraints": [
                    models.UniqueConstraint(fields=("user", "key"), name="one_form_draft_per_key")
                ],
            },
        ),
    ]
