"""Who could be acting as an account, for four eyes."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ('accounts', '0001_schema'),
    ]

    operations = [
        migrations.AddField(
            model_name='scimtoken',
            name='announced_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.CreateModel(
            name='AccountHolder',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('next_check_at', models.DateTimeField(blank=True, db_index=True, null=True)),
                ('lease_until', models.DateTimeField(blank=True, null=True)),
                ('lease_token', models.CharField(blank=True, default='', max_length=32)),
                ('check_failures', models.PositiveIntegerField(default=0)),
                ('means', models.CharField(choices=[('invitation', 'an invitation'), ('password link', 'a password link'), ('second factor', 'a removed second factor'), ('provider', 'a connected sign-in provider'), ('scim', 'a SCIM token')], max_length=20)),
                ('at', models.DateTimeField()),
                ('account', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='holders', to=settings.AUTH_USER_MODEL)),
                ('holder', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='held_accounts', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'indexes': [models.Index(fields=['holder', 'at'], name='held_accounts_at')],
                'constraints': [models.UniqueConstraint(fields=('account', 'holder', 'means'), name='one_holder_by_each_means')],
            },
        ),
    ]
