#!/bin/sh
# Run once, when the database is first made: an owner, as whom only migrations run, and the portal's
# own role, which owns nothing, so it can neither switch off a trigger nor empty a table.
set -eu
psql --quiet --no-psqlrc --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" \
  --set owner_password="$SLIPWAY_OWNER_PASSWORD" --set password="$SLIPWAY_DATABASE_PASSWORD" \
  --set database="$POSTGRES_DB" <<'SQL'
CREATE ROLE slipway_owner LOGIN PASSWORD :'owner_password';
CREATE ROLE slipway LOGIN PASSWORD :'password';
REVOKE ALL ON DATABASE :"database" FROM PUBLIC;
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT CONNECT ON DATABASE :"database" TO slipway, slipway_owner;
GRANT USAGE, CREATE ON SCHEMA public TO slipway_owner;
GRANT USAGE ON SCHEMA public TO slipway;
-- Costs are grouped by thousands of deployments: with the default of 4 MB that is sorted on disk, in twice the time.
ALTER ROLE slipway SET work_mem = '16MB';
-- Parts of words are searched by an index where the server has the extension.
SELECT 'CREATE EXTENSION pg_trgm' FROM pg_available_extensions WHERE name = 'pg_trgm' \gexec
ALTER DEFAULT PRIVILEGES FOR ROLE slipway_owner IN SCHEMA public
  GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO slipway;
ALTER DEFAULT PRIVILEGES FOR ROLE slipway_owner IN SCHEMA public
  GRANT USAGE, SELECT ON SEQUENCES TO slipway;
SQL
