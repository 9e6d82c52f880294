from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("fleet", "0002_sealed_rows_refuse_changes"),
    ]

    operations = [
        migrations.AddField(
            model_name="workload",
            name="metrics_path",
            field=models.CharField(default="/metrics", max_length=100),
        ),
    ]
