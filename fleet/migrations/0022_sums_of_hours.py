"""Sums of four hours of the ledger, and of a team's readings by the hour.

The database adds each ledger row to its four hours, as it adds it to its day (migration 0005). A migration that
makes SQLite write `fleet_ledgerrow` anew drops its trigger: it has to create it again.
"""

from django.db import migrations, models

_KEYS = "start, cluster_name, team_slug, is_idle, is_demo, model, deployment, revision"
_ADDED = """
    ON CONFLICT ({keys}) DO UPDATE
    SET gpu_milliseconds = {kept}gpu_milliseconds + excluded.gpu_milliseconds,
        cost_micros = {kept}cost_micros + excluded.cost_micros;
"""


def _postgresql(source):
    labels = ", ".join(
        f"coalesce(workload_labels->>'{name}', '')" for name in ("model", "deployment", "revision")
    )
    # In the order of the key, so that two transactions never wait for each other.
    return f"""
    INSERT INTO fleet_ledgerfourhours AS kept ({_KEYS}, gpu_milliseconds, cost_micros)
    SELECT date_bin('4 hours', hour, '2000-01-01 00:00:00+00'), cluster_name, team_slug,
        (kind = 'idle' OR (kind = 'adjustment' AND namespace = '')), is_demo, {labels},
        sum(gpu_milliseconds), sum((cost_amount * 1000000)::bigint)
    FROM {source} GROUP BY 1, 2, 3, 4, 5, 6, 7, 8 ORDER BY 1, 2, 3, 4, 5, 6, 7, 8
    {_ADDED.format(keys=_KEYS, kept="kept.")}
    """


def _sqlite(row, source):
    labels = ", ".join(
        f"coalesce(cast(json_extract({row}workload_labels, '$.{name}') AS text), '')"
        for name in ("model", "deployment", "revision")
    )
    hour = f"cast(strftime('%H', {row}hour) AS integer)"
    return f"""
    INSERT INTO fleet_ledgerfourhours ({_KEYS}, gpu_milliseconds, cost_micros)
    SELECT date({row}hour) || printf(' %02d:00:00', {hour} / 4 * 4), {row}cluster_name, {row}team_slug,
        ({row}kind = 'idle' OR ({row}kind = 'adjustment' AND {row}namespace = '')), {row}is_demo,
        {labels}, {row}gpu_milliseconds, cast(round({row}cost_amount * 1000000) AS integer)
    {source} WHERE true
    {_ADDED.format(keys=_KEYS, kept="")}
    """


def create(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(
            f"""
            CREATE FUNCTION slipway_add_to_ledger_four_hours() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN {_postgresql("new_rows")} RETURN NULL; END;
            $$;
            CREATE TRIGGER ledger_rows_add_to_four_hours AFTER INSERT ON fleet_ledgerrow
                REFERENCING NEW TABLE AS new_rows
                FOR EACH STATEMENT EXECUTE FUNCTION slipway_add_to_ledger_four_hours();
            """,
            params=None,
        )
        schema_editor.execute(_postgresql("fleet_ledgerrow"), params=None)
        return
    schema_editor.execute(
        "CREATE TRIGGER ledger_rows_add_to_four_hours AFTER INSERT ON fleet_ledgerrow "
        f"BEGIN {_sqlite('NEW.', '')} END",
        params=None,
    )
    schema_editor.execute(_sqlite("", "FROM fleet_ledgerrow"), params=None)


def drop(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(
            "DROP TRIGGER ledger_rows_add_to_four_hours ON fleet_ledgerrow;"
            "DROP FUNCTION slipway_add_to_ledger_four_hours();",
            params=None,
        )
    else:
        schema_editor.execute("DROP TRIGGER ledger_rows_add_to_four_hours", params=None)


_ID = ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"))


class Migration(migrations.Migration):
    dependencies = [("fleet", "0021_claimed_devices")]
    old_pods_go_on = (
        "They read and write the ledger and the sums of days as before, and the database adds their rows to the new "
        "sums too. Days that they sum up have no hours. Sealing waits while the sums of the past are written."
    )
    operations = [
        migrations.CreateModel(
            name="LedgerFourHours",
            fields=[
                _ID,
                ("cluster_name", models.CharField(max_length=40)),
                ("team_slug", models.CharField(blank=True, max_length=32)),
                ("is_idle", models.BooleanField()),
                ("is_demo", models.BooleanField()),
                ("gpu_milliseconds", models.BigIntegerField()),
                ("cost_micros", models.BigIntegerField()),
                ("start", models.DateTimeField()),
                ("model", models.TextField(blank=True)),
                ("deployment", models.TextField(blank=True)),
                ("revision", models.TextField(blank=True)),
            ],
            options={
                "indexes": [models.Index(fields=["team_slug", "start"], name="four_hours_of_team")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("start", "cluster_name", "team_slug", "is_idle", "is_demo", "model", "deployment", "revision"),
                        name="one_ledger_four_hours",
                    )
                ],
            },
        ),
        migrations.RunPython(create, drop),
        migrations.CreateModel(
            name="TeamUsageHour",
            fields=[
                _ID,
                ("request_success", models.BigIntegerField()),
                ("request_failure", models.BigIntegerField()),
                ("inference_count", models.BigIntegerField()),
                ("tokens", models.BigIntegerField()),
                ("observed_ms", models.BigIntegerField()),
                ("gpu_busy_ms", models.BigIntegerField()),
                ("gpu_busy_source", models.CharField(blank=True, max_length=10)),
                ("energy_mj", models.BigIntegerField(null=True)),
                ("energy_ms", models.BigIntegerField(db_default=0, default=0)),
                ("hour", models.DateTimeField()),
                ("cluster_name", models.CharField(max_length=40)),
                ("team_slug", models.CharField(max_length=32)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("hour", "cluster_name", "team_slug"), name="one_team_use_of_hour"
                    )
                ],
            },
        ),
        migrations.AddField(
            model_name="summedday",
            name="has_hours",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
