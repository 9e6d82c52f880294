from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("fleet", "0013_energy")]

    operations = [
        migrations.AddField(
            model_name="pod",
            name="instance_types",
            field=models.JSONField(
                default=list, db_default=models.Value([], output_field=models.JSONField())
            ),
        ),
    ]
