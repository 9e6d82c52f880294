"""The audit trail is append-only in the database itself. SQLite, the demo's database, is left without."""

from django.db import migrations

CREATE = """
CREATE FUNCTION slipway_refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'audit events are never changed or deleted';
END;
$$;
CREATE TRIGGER audit_events_are_final BEFORE UPDATE OR DELETE ON audit_auditevent
    FOR EACH ROW EXECUTE FUNCTION slipway_refuse_audit_change();
-- A trigger for each row does not see TRUNCATE, so that one has its own.
CREATE TRIGGER audit_events_are_kept BEFORE TRUNCATE ON audit_auditevent
    FOR EACH STATEMENT EXECUTE FUNCTION slipway_refuse_audit_change();
"""
DROP = """
DROP TRIGGER audit_events_are_kept ON audit_auditevent;
DROP TRIGGER audit_events_are_final ON audit_auditevent;
DROP FUNCTION slipway_refuse_audit_change();
"""


def _run(statements):
    def run(apps, schema_editor):
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.execute(statements, params=None)

    return run


class Migration(migrations.Migration):
    dependencies = [("audit", "0001_initial")]
    operations = [migrations.RunPython(_run(CREATE), _run(DROP))]
