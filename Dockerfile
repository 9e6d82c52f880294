# One image for every role of the portal; docker-compose.yml says which command makes which role.
# A digest can follow the version: @sha256:…
FROM python:3.11.14-slim-bookworm

ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 \
    DJANGO_SETTINGS_MODULE=portal.settings SLIPWAY_STATIC_ROOT=/srv/slipway/staticfiles
WORKDIR /srv/slipway

# The threads of LightGBM, whose wheel does not bring them.
RUN apt-get update && apt-get install -y --no-install-recommends libgomp1 && rm -rf /var/lib/apt/lists/*

# Runtime dependencies only, at exactly the versions that the tests ran with.
COPY requirements-image.lock ./
RUN pip install --no-deps --require-hashes -r requirements-image.lock

COPY manage.py ./
COPY portal portal
COPY deployments deployments
COPY fleet fleet
COPY templates templates
COPY static static
COPY docs docs

# Compiled here, because whoever runs the parts may not write. Static files need settings but none of
# what they point to.
RUN python -m compileall -q portal deployments fleet \
 && SLIPWAY_SECRET_KEY=only-while-the-image-is-built-0123456789 \
    SLIPWAY_DATABASE_URL=sqlite:////tmp/none.sqlite3 SLIPWAY_REDIS_URL=redis://127.0.0.1:1/0 \
    python manage.py collectstatic --noinput \
 && useradd --system --uid 10001 slipway
USER slipway

EXPOSE 8000
CMD ["gunicorn", "portal.wsgi:application", "--config", "python:portal.web_server", \
     "--worker-class", "gthread", "--workers", "2", "--threads", "8", "--bind", "0.0.0.0:8000", "--no-control-socket"]
