"""All tables of the app. A new database begins here, one of 0.2.0 with the migrations that it replaces (ADR 95)."""

import django.contrib.auth.validators
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.text
import django.utils.timezone
import uuid
from decimal import Decimal
from django.conf import settings
from django.db import migrations, models

from portal.core.schema.operations import CreateModels


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ('accounts', '0001_initial'),
        ('accounts', '0002_upgrade_from_0_2_0'),
    ]

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
    ]

    operations = [
        CreateModels(
            [
                migrations.CreateModel(
                    name='Invitation',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('next_check_at', models.DateTimeField(blank=True, db_index=True, null=True)),
                        ('lease_until', models.DateTimeField(blank=True, null=True)),
                        ('lease_token', models.CharField(blank=True, default='', max_length=32)),
                        ('check_failures', models.PositiveIntegerField(default=0)),
                        ('nonce', models.CharField(max_length=64)),
                        ('digest', models.CharField(max_length=64, unique=True)),
                        ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('created_at', models.DateTimeField()),
                        ('expires_at', models.DateTimeField()),
                        ('used_at', models.DateTimeField(null=True)),
                        ('revoked_at', models.DateTimeField(null=True)),
                        ('mailed_at', models.DateTimeField(null=True)),
                        ('mail_outcome', models.CharField(blank=True, default='', max_length=200)),
                        ('name', models.CharField(max_length=150)),
                        ('email', models.EmailField(max_length=254)),
                        ('team', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='invitations', to='accounts.team')),
                        ('role', models.CharField(max_length=10)),
                        ('used_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ],
                    options={
                        'ordering': ['-id'],
                        'abstract': False,
                        'constraints': [models.UniqueConstraint(condition=models.Q(('revoked_at', None), ('used_at', None)), fields=('team', 'email'), name='one_open_invitation')],
                    },
                ),
                migrations.CreateModel(
                    name='PasswordLink',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('next_check_at', models.DateTimeField(blank=True, db_index=True, null=True)),
                        ('lease_until', models.DateTimeField(blank=True, null=True)),
                        ('lease_token', models.CharField(blank=True, default='', max_length=32)),
                        ('check_failures', models.PositiveIntegerField(default=0)),
                        ('nonce', models.CharField(max_length=64)),
                        ('digest', models.CharField(max_length=64, unique=True)),
                        ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('created_at', models.DateTimeField()),
                        ('expires_at', models.DateTimeField()),
                        ('used_at', models.DateTimeField(null=True)),
                        ('revoked_at', models.DateTimeField(null=True)),
                        ('mailed_at', models.DateTimeField(null=True)),
                        ('mail_outcome', models.CharField(blank=True, default='', max_length=200)),
                        ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ],
                    options={
                        'ordering': ['-id'],
                        'abstract': False,
                    },
                ),
                migrations.CreateModel(
                    name='BrowserSession',
                    fields=[
                        ('session_key', models.CharField(max_length=40, primary_key=True, serialize=False, verbose_name='session key')),
                        ('session_data', models.TextField(verbose_name='session data')),
                        ('expire_date', models.DateTimeField(db_index=True, verbose_name='expire date')),
                        ('user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='browser_sessions', to=settings.AUTH_USER_MODEL)),
                        ('began_at', models.DateTimeField()),
                        ('last_seen_at', models.DateTimeField()),
                        ('address', models.CharField(blank=True, default='', max_length=64)),
                        ('user_agent', models.CharField(blank=True, default='', max_length=300)),
                        ('method', models.CharField(blank=True, default='', max_length=80)),
                    ],
                    options={
                        'verbose_name': 'session',
                        'verbose_name_plural': 'sessions',
                        'abstract': False,
                    },
                ),
                migrations.CreateModel(
                    name='Authenticator',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='authenticator', to=settings.AUTH_USER_MODEL)),
                        ('sealed_key', models.TextField()),
                        ('created_at', models.DateTimeField()),
                        ('confirmed_at', models.DateTimeField(null=True)),
                        ('last_step', models.BigIntegerField(default=0)),
                    ],
                ),
                migrations.CreateModel(
                    name='Passkey',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='passkeys', to=settings.AUTH_USER_MODEL)),
                        ('name', models.CharField(max_length=60)),
                        ('credential_id', models.CharField(max_length=1400, unique=True)),
                        ('credential', models.BinaryField()),
                        ('sign_count', models.BigIntegerField(default=0)),
                        ('created_at', models.DateTimeField()),
                        ('last_used_at', models.DateTimeField(null=True)),
                    ],
                    options={
                        'ordering': ['id'],
                    },
                ),
                migrations.CreateModel(
                    name='RecoveryCode',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='recovery_codes', to=settings.AUTH_USER_MODEL)),
                        ('digest', models.CharField(max_length=64)),
                        ('used_at', models.DateTimeField(null=True)),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('user', 'digest'), name='one_recovery_code')],
                    },
                ),
                migrations.CreateModel(
                    name='ScimToken',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('provider', models.CharField(max_length=40)),
                        ('prefix', models.CharField(max_length=16)),
                        ('digest', models.CharField(max_length=64, unique=True)),
                        ('created_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('created_at', models.DateTimeField()),
                        ('expires_at', models.DateTimeField()),
                        ('last_used_at', models.DateTimeField(null=True)),
                        ('revoked_at', models.DateTimeField(null=True)),
                    ],
                    options={
                        'ordering': ['-id'],
                    },
                ),
                migrations.CreateModel(
                    name='ProvisionedPerson',
                    fields=[
                        ('id', models.UUIDField(default=uuid.uuid4, primary_key=True, serialize=False)),
                        ('provider', models.CharField(max_length=40)),
                        ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='provisioned', to=settings.AUTH_USER_MODEL)),
                        ('user_name', models.CharField(max_length=254)),
                        ('external_id', models.CharField(blank=True, default='', max_length=255)),
                        ('is_active', models.BooleanField(default=True)),
                        ('gives_platform_admin', models.BooleanField(default=False)),
                        ('created_at', models.DateTimeField()),
                        ('changed_at', models.DateTimeField()),
                        ('deleted_at', models.DateTimeField(null=True)),
                    ],
                    options={
                        'ordering': ['created_at', 'id'],
                        'constraints': [models.UniqueConstraint(models.F('provider'), django.db.models.functions.text.Lower('user_name'), condition=models.Q(('deleted_at', None)), name='one_provisioned_person_per_name'), models.UniqueConstraint(condition=models.Q(('external_id', ''), _negated=True), fields=('provider', 'external_id'), name='one_provisioned_person_per_external_id'), models.UniqueConstraint(fields=('provider', 'user'), name='one_provisioned_person_per_account')],
                    },
                ),
                migrations.CreateModel(
                    name='ProvisionedGroup',
                    fields=[
                        ('id', models.UUIDField(default=uuid.uuid4, primary_key=True, serialize=False)),
                        ('provider', models.CharField(max_length=40)),
                        ('display_name', models.CharField(max_length=255)),
                        ('external_id', models.CharField(blank=True, default='', max_length=255)),
                        ('created_at', models.DateTimeField()),
                        ('changed_at', models.DateTimeField()),
                        ('members', models.ManyToManyField(related_name='groups', to='accounts.provisionedperson')),
                    ],
                    options={
                        'ordering': ['created_at', 'id'],
                        'constraints': [models.UniqueConstraint(models.F('provider'), django.db.models.functions.text.Lower('display_name'), name='one_provisioned_group_per_name')],
                    },
                ),
                migrations.CreateModel(
                    name='User',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('password', models.CharField(max_length=128, verbose_name='password')),
                        ('last_login', models.DateTimeField(blank=True, null=True, verbose_name='last login')),
                        ('is_superuser', models.BooleanField(default=False, help_text='Designates that this user has all permissions without explicitly assigning them.', verbose_name='superuser status')),
                        ('username', models.CharField(error_messages={'unique': 'A user with that username already exists.'}, help_text='Required. 150 characters or fewer. Letters, digits and @/./+/-/_ only.', max_length=150, unique=True, validators=[django.contrib.auth.validators.UnicodeUsernameValidator()], verbose_name='username')),
                        ('first_name', models.CharField(blank=True, max_length=150, verbose_name='first name')),
                        ('last_name', models.CharField(blank=True, max_length=150, verbose_name='last name')),
                        ('email', models.EmailField(blank=True, max_length=254, verbose_name='email address')),
                        ('is_staff', models.BooleanField(default=False, help_text='Designates whether the user can log into this admin site.', verbose_name='staff status')),
                        ('is_active', models.BooleanField(default=True, help_text='Designates whether this user should be treated as active. Unselect this instead of deleting accounts.', verbose_name='active')),
                        ('date_joined', models.DateTimeField(default=django.utils.timezone.now, verbose_name='date joined')),
                        ('is_platform_admin', models.BooleanField(default=False)),
                        ('theme', models.CharField(blank=True, default='', max_length=5)),
                        ('service_team', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='service_accounts', to='accounts.team')),
                        ('groups', models.ManyToManyField(blank=True, help_text='The groups this user belongs to. A user will get all permissions granted to each of their groups.', related_name='user_set', related_query_name='user', to='auth.group', verbose_name='groups')),
                        ('user_permissions', models.ManyToManyField(blank=True, help_text='Specific permissions for this user.', related_name='user_set', related_query_name='user', to='auth.permission', verbose_name='user permissions')),
                    ],
                    options={
                        'verbose_name': 'user',
                        'verbose_name_plural': 'users',
                        'abstract': False,
                        'constraints': [models.CheckConstraint(condition=models.Q(('service_team', None), ('is_platform_admin', False), _connector='OR'), name='service_account_is_no_admin')],
                    },
                ),
                migrations.CreateModel(
                    name='Team',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('slug', models.CharField(max_length=32, unique=True, validators=[django.core.validators.RegexValidator('^[a-z]([-a-z0-9]{0,30}[a-z0-9])?$')])),
                        ('name', models.CharField(max_length=80)),
                        ('quota_gpus', models.PositiveIntegerField(default=4)),
                        ('monthly_budget_amount', models.DecimalField(decimal_places=2, default=Decimal('0.00'), max_digits=12)),
                        ('is_budget_binding', models.BooleanField(default=False)),
                        ('created_at', models.DateTimeField()),
                    ],
                    options={
                        'ordering': ['slug'],
                    },
                ),
                migrations.CreateModel(
                    name='Membership',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to=settings.AUTH_USER_MODEL)),
                        ('team', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to='accounts.team')),
                        ('role', models.CharField(choices=[('viewer', 'Viewer'), ('member', 'Member'), ('lead', 'Lead')], max_length=10)),
                        ('provider', models.CharField(blank=True, default='', max_length=40)),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('user', 'team'), name='one_membership_per_team'), models.CheckConstraint(condition=models.Q(('role__in', ['viewer', 'member', 'lead'])), name='known_role')],
                    },
                ),
                migrations.CreateModel(
                    name='Identity',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='identities', to=settings.AUTH_USER_MODEL)),
                        ('provider', models.CharField(max_length=40)),
                        ('issuer', models.CharField(max_length=500)),
                        ('subject', models.CharField(max_length=255)),
                        ('gives_platform_admin', models.BooleanField(default=False)),
                        ('created_at', models.DateTimeField()),
                        ('signed_in_at', models.DateTimeField(null=True)),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('issuer', 'subject'), name='one_person_per_subject'), models.UniqueConstraint(fields=('user', 'issuer'), name='one_subject_per_person')],
                    },
                ),
                migrations.CreateModel(
                    name='Delegation',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('team', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='delegations', to='accounts.team')),
                        ('lead', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('delegate', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('reason', models.CharField(max_length=300)),
                        ('starts_at', models.DateTimeField()),
                        ('ends_at', models.DateTimeField()),
                        ('created_at', models.DateTimeField()),
                        ('ended_at', models.DateTimeField(null=True)),
                    ],
                    options={
                        'ordering': ['-id'],
                        'constraints': [models.CheckConstraint(condition=models.Q(('ends_at__gt', models.F('starts_at'))), name='delegation_has_length'), models.CheckConstraint(condition=models.Q(('lead', models.F('delegate')), _negated=True), name='delegate_is_another')],
                    },
                ),
                migrations.CreateModel(
                    name='ApiToken',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='api_tokens', to=settings.AUTH_USER_MODEL)),
                        ('name', models.CharField(max_length=80)),
                        ('prefix', models.CharField(max_length=16)),
                        ('digest', models.CharField(max_length=64, unique=True)),
                        ('scopes', models.CharField(default='read', max_length=60)),
                        ('team', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.team')),
                        ('requests_per_minute', models.PositiveIntegerField(null=True)),
                        ('made_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('created_at', models.DateTimeField()),
                        ('expires_at', models.DateTimeField()),
                        ('last_used_at', models.DateTimeField(blank=True, null=True)),
                        ('revoked_at', models.DateTimeField(blank=True, null=True)),
                    ],
                    options={
                        'ordering': ['-created_at', '-id'],
                    },
                ),
            ]
        )
    ]
