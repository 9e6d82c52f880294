"""The request that a resubmitted one replaces."""

from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("deployments", "0007_request_comments")]

    operations = [
        migrations.AddField(
            model_name="changerequest",
            name="replaces",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="replacements",
                to="deployments.changerequest",
            ),
        ),
    ]
