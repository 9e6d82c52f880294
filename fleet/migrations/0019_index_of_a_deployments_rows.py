from django.db import migrations, models
from django.db.models.fields.json import KeyTextTransform


class Migration(migrations.Migration):
    dependencies = [("fleet", "0016_workload_ends_at_and_xids")]

    operations = [
        migrations.AddIndex(
            model_name="ledgerrow",
            index=models.Index(
                models.F("team_slug"),
                KeyTextTransform("deployment", "workload_labels"),
                models.F("hour"),
                name="rows_of_a_deployment",
            ),
        )
    ]
