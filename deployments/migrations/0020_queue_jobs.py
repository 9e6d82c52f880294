from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('deployments', '0018_caller_tokens_and_limits'),
    ]

    operations = [
        migrations.AddField(
            model_name='batchjob',
            name='drained',
            field=models.JSONField(null=True),
        ),
        migrations.AddField(
            model_name='batchjob',
            name='is_queue',
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
