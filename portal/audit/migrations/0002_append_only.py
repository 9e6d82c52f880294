"""The audit trail is append-only in the database itself. SQLite, the demo's database, is left without."""

from django.db import migrations

# Rows of these are written once. The function's message is the same for all of them.
FINAL = ("audit_auditevent", "audit_chainlink", "audit_chainanchor", "audit_anchorcopy", "audit_chaincheck")


def create_triggers(table):
    return f"""
CREATE TRIGGER audit_events_are_final BEFORE UPDATE OR DELETE ON {table}
    FOR EACH ROW EXECUTE FUNCTION slipway_refuse_audit_change();
-- A trigger for each row does not see TRUNCATE, so that one has its own.
CREATE TRIGGER audit_events_are_kept BEFORE TRUNCATE ON {table}
    FOR EACH STATEMENT EXECUTE FUNCTION slipway_refuse_audit_change();
"""


def drop_triggers(table):
    return f"""
DROP TRIGGER audit_events_are_kept ON {table};
DROP TRIGGER audit_events_are_final ON {table};
"""


CREATE = """
CREATE FUNCTION slipway_refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'audit events are never changed or deleted';
END;
$$;
""" + "".join(map(create_triggers, FINAL))
DROP = "".join(map(drop_triggers, FINAL)) + "DROP FUNCTION slipway_refuse_audit_change();"


def _run(statements):
    def run(apps, schema_editor):
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.execute(statements, params=None)

    return run


class Migration(migrations.Migration):
    initial = True
    replaces = [("audit", "0002_events_refuse_changes"), ("audit", "0004_chain_refuses_changes")]
    dependencies = [("audit", "0001_schema")]
    operations = [migrations.RunPython(_run(CREATE), _run(DROP))]
