"""The database adds each ledger row to its roll-ups, in the statement that inserts it.

A migration that makes SQLite write `fleet_ledgerrow` anew drops its trigger: it has to create it again.
"""

from django.db import migrations

SUMS = "gpu_milliseconds, cost_micros"
DAY_LABELS = ("model", "deployment", "revision")
# (table, its column of time, columns of labels)
ROLLUPS = (
    ("fleet_ledgerteamhour", "hour", ()),
    ("fleet_ledgerteamday", "day", ()),
    ("fleet_ledgerday", "day", DAY_LABELS),
)
IS_IDLE = "(kind = 'idle' OR (kind = 'adjustment' AND namespace = ''))"


def _postgresql(table, time, labels, source):
    at = "hour" if time == "hour" else "(hour AT TIME ZONE 'UTC')::date"
    values = [f"coalesce(workload_labels->>'{name}', '')" for name in labels]
    keys = [time, "cluster_name", "team_slug", "is_idle", "is_demo", *labels]
    expressions = [at, "cluster_name", "team_slug", IS_IDLE, "is_demo", *values]
    numbers = ", ".join(str(n) for n in range(1, len(keys) + 1))
    # In the order of the key, so that two transactions never wait for each other.
    return f"""
    INSERT INTO {table} AS kept ({", ".join(keys)}, {SUMS})
    SELECT {", ".join(expressions)}, sum(gpu_milliseconds), sum((cost_amount * 1000000)::bigint)
    FROM {source} GROUP BY {numbers} ORDER BY {numbers}
    ON CONFLICT ({", ".join(keys)}) DO UPDATE
    SET gpu_milliseconds = kept.gpu_milliseconds + excluded.gpu_milliseconds,
        cost_micros = kept.cost_micros + excluded.cost_micros;
    """


def _sqlite(table, time, labels, row, source):
    at = f"{row}hour" if time == "hour" else f"date({row}hour)"
    idle = f"({row}kind = 'idle' OR ({row}kind = 'adjustment' AND {row}namespace = ''))"
    values = [
        f"coalesce(cast(json_extract({row}workload_labels, '$.{name}') AS text), '')"
        for name in labels
    ]
    keys = [time, "cluster_name", "team_slug", "is_idle", "is_demo", *labels]
    plain = [f"{row}{name}" for name in ("cluster_name", "team_slug")]
    expressions = [at, *plain, idle, f"{row}is_demo", *values]
    cost = f"cast(round({row}cost_amount * 1000000) AS integer)"
    return f"""
    INSERT INTO {table} ({", ".join(keys)}, {SUMS})
    SELECT {", ".join(expressions)}, {row}gpu_milliseconds, {cost} {source} WHERE true
    ON CONFLICT ({", ".join(keys)}) DO UPDATE
    SET gpu_milliseconds = gpu_milliseconds + excluded.gpu_milliseconds,
        cost_micros = cost_micros + excluded.cost_micros;
    """


def create(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        body = "".join(_postgresql(*rollup, "new_rows") for rollup in ROLLUPS)
        schema_editor.execute(
            f"""
            CREATE FUNCTION slipway_add_to_ledger_days() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN {body} RETURN NULL; END;
            $$;
            CREATE TRIGGER ledger_rows_add_to_days AFTER INSERT ON fleet_ledgerrow
                REFERENCING NEW TABLE AS new_rows
                FOR EACH STATEMENT EXECUTE FUNCTION slipway_add_to_ledger_days();
            """,
            params=None,
        )
        for rollup in ROLLUPS:
            schema_editor.execute(_postgresql(*rollup, "fleet_ledgerrow"), params=None)
        return
    body = "".join(_sqlite(*rollup, "NEW.", "") for rollup in ROLLUPS)
    schema_editor.execute(
        f"CREATE TRIGGER ledger_rows_add_to_days AFTER INSERT ON fleet_ledgerrow BEGIN {body} END",
        params=None,
    )
    for rollup in ROLLUPS:
        schema_editor.execute(_sqlite(*rollup, "", "FROM fleet_ledgerrow"), params=None)


def drop(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(
            "DROP TRIGGER ledger_rows_add_to_days ON fleet_ledgerrow;"
            "DROP FUNCTION slipway_add_to_ledger_days();",
            params=None,
        )
    else:
        schema_editor.execute("DROP TRIGGER ledger_rows_add_to_days", params=None)


class Migration(migrations.Migration):
    dependencies = [("fleet", "0004_ledger_days")]
    operations = [migrations.RunPython(create, drop)]
