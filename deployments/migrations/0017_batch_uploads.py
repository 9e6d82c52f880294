
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0003_passkeys'),
        ('deployments', '0016_gpu_names'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name='batchchunk',
            name='first_line',
            field=models.BigIntegerField(db_default=0, default=0),
        ),
        migrations.CreateModel(
            name='BatchUpload',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('size_bytes', models.BigIntegerField()),
                ('part_size_bytes', models.BigIntegerField(default=0)),
                ('upload_id', models.CharField(blank=True, default='', max_length=300)),
                ('assembly_deadline_at', models.DateTimeField(null=True)),
                ('s3_version_id', models.CharField(blank=True, default='', max_length=200)),
                ('token', models.CharField(max_length=32, unique=True)),
                ('path', models.CharField(max_length=100)),
                ('has_part_checksums', models.BooleanField(default=False)),
                ('created_at', models.DateTimeField()),
                ('expires_at', models.DateTimeField(db_index=True)),
                ('created_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('team', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.team')),
            ],
            options={
                'ordering': ['-id'],
            },
        ),
    ]
