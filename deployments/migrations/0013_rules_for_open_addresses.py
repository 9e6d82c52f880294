from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("deployments", "0011_attestations")]

    operations = [
        migrations.AddField(
            model_name="approvalrule",
            name="only_opening",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
