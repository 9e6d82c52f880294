"""The team to which signing in returns."""

from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0002_account_holders")]

    operations = [
        migrations.AddField(
            model_name="user",
            name="last_team",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="accounts.team",
            ),
        ),
    ]
