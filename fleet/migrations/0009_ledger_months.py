"""The database adds each ledger row to its month, as it adds it to its day (migration 0005).

A migration that makes SQLite write `fleet_ledgerrow` anew drops its trigger: it has to create it again.
"""

from django.db import migrations, models

_KEYS = "month, cluster_name, team_slug, is_idle, is_demo, model, deployment, revision"
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
    INSERT INTO fleet_ledgermonth AS kept ({_KEYS}, gpu_milliseconds, cost_micros)
    SELECT date_trunc('month', hour AT TIME ZONE 'UTC')::date, cluster_name, team_slug,
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
    return f"""
    INSERT INTO fleet_ledgermonth ({_KEYS}, gpu_milliseconds, cost_micros)
    SELECT date({row}hour, 'start of month'), {row}cluster_name, {row}team_slug,
        ({row}kind = 'idle' OR ({row}kind = 'adjustment' AND {row}namespace = '')), {row}is_demo,
        {labels}, {row}gpu_milliseconds, cast(round({row}cost_amount * 1000000) AS integer)
    {source} WHERE true
    {_ADDED.format(keys=_KEYS, kept="")}
    """


def create(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(
            f"""
            CREATE FUNCTION slipway_add_to_ledger_months() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN {_postgresql("new_rows")} RETURN NULL; END;
            $$;
            CREATE TRIGGER ledger_rows_add_to_months AFTER INSERT ON fleet_ledgerrow
                REFERENCING NEW TABLE AS new_rows
                FOR EACH STATEMENT EXECUTE FUNCTION slipway_add_to_ledger_months();
            """,
            params=None,
        )
        schema_editor.execute(_postgresql("fleet_ledgerrow"), params=None)
        return
    schema_editor.execute(
        "CREATE TRIGGER ledger_rows_add_to_months AFTER INSERT ON fleet_ledgerrow "
        f"BEGIN {_sqlite('NEW.', '')} END",
        params=None,
    )
    schema_editor.execute(_sqlite("", "FROM fleet_ledgerrow"), params=None)


def drop(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(
            "DROP TRIGGER ledger_rows_add_to_months ON fleet_ledgerrow;"
            "DROP FUNCTION slipway_add_to_ledger_months();",
            params=None,
        )
    else:
        schema_editor.execute("DROP TRIGGER ledger_rows_add_to_months", params=None)


class Migration(migrations.Migration):
    dependencies = [("fleet", "0008_node_health")]
    operations = [
        migrations.CreateModel(
            name="LedgerMonth",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("cluster_name", models.CharField(max_length=40)),
                ("team_slug", models.CharField(blank=True, max_length=32)),
                ("is_idle", models.BooleanField()),
                ("is_demo", models.BooleanField()),
                ("gpu_milliseconds", models.BigIntegerField()),
                ("cost_micros", models.BigIntegerField()),
                ("month", models.DateField()),
                ("model", models.TextField(blank=True)),
                ("deployment", models.TextField(blank=True)),
                ("revision", models.TextField(blank=True)),
            ],
            options={
                "indexes": [models.Index(fields=["team_slug", "deployment", "month"], name="ledger_months_of_deployment")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("month", "cluster_name", "team_slug", "is_idle", "is_demo", "model", "deployment", "revision"),
                        name="one_ledger_month",
                    )
                ],
            },
        ),
        migrations.RunPython(create, drop),
    ]
