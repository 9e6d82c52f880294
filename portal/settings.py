"""Django settings. Everything a deployment may change is read from the environment here, only here.

docs/settings.md lists the variables. `make demo` sets all of them to embedded parts.
"""

from __future__ import annotations

from pathlib import Path

from portal import default_images, enum_names, env, logging_config, password_rules
from portal.accounts.oidc import providers as oidc_providers

BASE_DIR = Path(__file__).resolve().parent.parent
# Templates, static files and documents: a wheel has them inside the package.
_BUNDLED = BASE_DIR / "portal" / "bundled"
FILES_DIR, _STATE_DIR = (_BUNDLED, Path.cwd()) if _BUNDLED.is_dir() else (BASE_DIR, BASE_DIR)

SECRET_KEY = env.secret("SLIPWAY_SECRET_KEY", value_hint="50 random characters")
DEBUG = env.flag("SLIPWAY_DEBUG", default=False)
ALLOWED_HOSTS = env.names("SLIPWAY_ALLOWED_HOSTS", "127.0.0.1,localhost")
CSRF_TRUSTED_ORIGINS = env.names("SLIPWAY_TRUSTED_ORIGINS")

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "django.contrib.postgres",
    "django_htmx",
    "csp",
    "rest_framework",
    "drf_spectacular",
    # Their parts are called by portal.accounts.oidc; their pages have no addresses.
    "allauth.account",
    "allauth.socialaccount",
    "portal.apps.PortalConfig",
    "portal.accounts.apps.AccountsConfig",
    "portal.audit.apps.AuditConfig",
    "portal.api.apps.ApiConfig",
    "portal.ui.apps.UiConfig",
    "portal.notifications.apps.NotificationsConfig",
    "fleet.apps.FleetConfig",
    "deployments.apps.DeploymentsConfig",
]

MIDDLEWARE = [
    "portal.monitoring.exposition.middleware.MetricsMiddleware",
    "portal.monitoring.request_traces.TracingMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "portal.api.border.PlainHttpMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "portal.core.content_policy.ContentPolicyMiddleware",
    # Before what looks at the host.
    "portal.api.health.ProbesMiddleware",
    "portal.api.border.NulMiddleware",
    "portal.api.border.LargeNumberMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "portal.ui.middleware.SessionUserMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "portal.ui.middleware.LastSeenMiddleware",
    "portal.api.border.ApiSecondFactorMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "portal.ui.middleware.FragmentCacheMiddleware",
    "portal.ui.middleware.SecondFactorMiddleware",
    "portal.ui.middleware.TeamMiddleware",
    "portal.ui.middleware.DomainErrorMiddleware",
]

ROOT_URLCONF = "portal.urls"
WSGI_APPLICATION = "portal.wsgi.application"
ASGI_APPLICATION = "portal.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [FILES_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "portal.ui.context.frame",
            ],
            "builtins": [f"portal.ui.templatetags.{name}" for name in ("slipway", "amounts")],
        },
    },
]

DATABASES = {"default": env.database("SLIPWAY_DATABASE_URL")}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
AUTH_USER_MODEL = "accounts.User"
# Argon2id costs an attacker memory, and a sign-in a fraction of the processor time of PBKDF2.
# Hashed anew at the next sign-in: passwords that 0.2.0 stored.
_OLDER_HASHERS = ["django.contrib.auth.hashers.PBKDF2PasswordHasher"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher", *_OLDER_HASHERS]
AUTH_PASSWORD_VALIDATORS = password_rules.validators(
    words=env.names("SLIPWAY_PASSWORD_WORDS"),
    looks_up_stolen=env.flag("SLIPWAY_BREACHED_PASSWORDS", default=False),
)
LOGIN_URL = "sign-in"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "sign-in"
# Roles from claims are read at sign-in, so a session must not outlive a working day by much.
SESSION_COOKIE_AGE = env.integer("SLIPWAY_SESSION_HOURS", 12) * 3600
SLIPWAY_SESSION_IDLE_MINUTES = env.integer("SLIPWAY_SESSION_IDLE_MINUTES", 120)
SLIPWAY_REQUIRE_SECOND_FACTOR = env.flag("SLIPWAY_REQUIRE_SECOND_FACTOR", default=False)
# Decisions need a sign-in or a confirmation that is at most so old; 0: as old as the session.
SLIPWAY_STEP_UP_MINUTES = env.integer("SLIPWAY_STEP_UP_MINUTES", 0)
SESSION_ENGINE = "portal.accounts.local.session_store"
SLIPWAY_OIDC = oidc_providers.read(env.names("SLIPWAY_OIDC"))
ACCOUNT_EMAIL_VERIFICATION = "none"
SOCIALACCOUNT_STORE_TOKENS = False
SOCIALACCOUNT_REQUESTS_TIMEOUT = 10  # seconds

SLIPWAY_REDIS_URL = env.secret("SLIPWAY_REDIS_URL", value_hint="redis://HOST:6379/0")
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": SLIPWAY_REDIS_URL,
        # A cache that hangs must not delay a sign-in.
        "OPTIONS": {"socket_timeout": 2, "socket_connect_timeout": 2},
    }
}

SLIPWAY_TRUSTED_PROXIES = env.networks("SLIPWAY_TRUSTED_PROXIES")
SLIPWAY_API_REQUESTS_PER_MINUTE = env.integer("SLIPWAY_API_REQUESTS_PER_MINUTE", 1200)
SLIPWAY_API_ANONYMOUS_PER_MINUTE = env.integer("SLIPWAY_API_ANONYMOUS_PER_MINUTE", 60)
# Who reads /metrics: whoever has the token, or comes directly from a network. Neither: nobody.
SLIPWAY_METRICS_TOKEN = env.optional_secret("SLIPWAY_METRICS_TOKEN", least_characters=16)
SLIPWAY_METRICS_NETWORKS = env.networks("SLIPWAY_METRICS_NETWORKS")
SLIPWAY_OTLP_ENDPOINT = env.text("SLIPWAY_OTLP_ENDPOINT", "")
SLIPWAY_OTLP_HEADERS = env.secrets_by_name("SLIPWAY_OTLP_HEADERS")
SLIPWAY_TOKEN_MAX_DAYS = env.integer("SLIPWAY_TOKEN_MAX_DAYS", 365)

SLIPWAY_S3_BUCKET = env.text("SLIPWAY_S3_BUCKET", "slipway-models")
SLIPWAY_S3_REGION = env.text("SLIPWAY_S3_REGION", "us-east-1")
# Empty means AWS itself. The browser endpoint differs only when clients reach S3 by another name.
SLIPWAY_S3_ENDPOINT_URL = env.text("SLIPWAY_S3_ENDPOINT_URL", "")
SLIPWAY_S3_BROWSER_ENDPOINT_URL = env.text(
    "SLIPWAY_S3_BROWSER_ENDPOINT_URL", SLIPWAY_S3_ENDPOINT_URL
)
SLIPWAY_AWS_PRICES = env.flag("SLIPWAY_AWS_PRICES", default=False)  # read once a day
SLIPWAY_MAX_UPLOAD_BYTES = env.integer("SLIPWAY_MAX_UPLOAD_BYTES", 50 * 2**30)
SLIPWAY_MAX_VERSION_BYTES = env.integer("SLIPWAY_MAX_VERSION_BYTES", 5 * 2**40)
# Of one team at a time, and altogether; promised bytes count from the start of an upload.
SLIPWAY_TEAM_OPEN_UPLOADS = env.integer("SLIPWAY_TEAM_OPEN_UPLOADS", 20)
SLIPWAY_TEAM_STORAGE_BYTES = env.integer("SLIPWAY_TEAM_STORAGE_BYTES", 10 * 2**40)
SLIPWAY_AUDIT_ANCHOR_DAYS = env.integer("SLIPWAY_AUDIT_ANCHOR_DAYS", 400)
SLIPWAY_AUDIT_SYSLOG = env.text("SLIPWAY_AUDIT_SYSLOG", "")
SLIPWAY_AUDIT_SYSLOG_CA = env.text("SLIPWAY_AUDIT_SYSLOG_CA", "")
# Where models can be imported from. {team} becomes the team's short name.
SLIPWAY_IMPORT_S3 = env.names("SLIPWAY_IMPORT_S3")
SLIPWAY_BATCH_QUEUES = env.names("SLIPWAY_BATCH_QUEUES")
# Hosts inside the network that URLs may name; HTTP without TLS is for these only.
SLIPWAY_IMPORT_PRIVATE_HOSTS = env.names("SLIPWAY_IMPORT_PRIVATE_HOSTS")
# The hub or a mirror with its API; empty switches it off. One token for all teams.
SLIPWAY_IMPORT_HUGGINGFACE = env.text("SLIPWAY_IMPORT_HUGGINGFACE", "https://huggingface.co")
SLIPWAY_IMPORT_HUGGINGFACE_TOKEN = env.optional_secret("SLIPWAY_IMPORT_HUGGINGFACE_TOKEN")
# MLflow tracking servers by name, and for each that needs one "user:password" or a token, a line each.
SLIPWAY_IMPORT_MLFLOW = env.addresses("SLIPWAY_IMPORT_MLFLOW")
SLIPWAY_IMPORT_MLFLOW_CREDENTIALS = env.secrets_by_name("SLIPWAY_IMPORT_MLFLOW_CREDENTIALS")
# What one examination of an uploaded file may use before the file's own size is added.
SLIPWAY_EXAMINATION_MEMORY_MIB = env.integer("SLIPWAY_EXAMINATION_MEMORY_MIB", 1024)
SLIPWAY_EXAMINATION_CPU_SECONDS = env.integer("SLIPWAY_EXAMINATION_CPU_SECONDS", 30)
# The program that loads a version in a Triton of the worker's machine; empty: load tests are not tried.
SLIPWAY_LOAD_TEST_COMMAND = env.text("SLIPWAY_LOAD_TEST_COMMAND", "")
SLIPWAY_LOAD_TEST_MAX_MIB = env.integer("SLIPWAY_LOAD_TEST_MAX_MIB", 2048)
SLIPWAY_LOAD_TEST_SECONDS = env.integer("SLIPWAY_LOAD_TEST_SECONDS", 120)
SLIPWAY_TRITON_IMAGE = env.text("SLIPWAY_TRITON_IMAGE", default_images.TRITON)
SLIPWAY_TRITON_VLLM_IMAGE = env.text("SLIPWAY_TRITON_VLLM_IMAGE", default_images.TRITON_VLLM)
SLIPWAY_VLLM_IMAGE = env.text("SLIPWAY_VLLM_IMAGE", default_images.VLLM)
SLIPWAY_VLLM_NEURON_IMAGE = env.text("SLIPWAY_VLLM_NEURON_IMAGE", default_images.VLLM_NEURON)
SLIPWAY_SGLANG_IMAGE = env.text("SLIPWAY_SGLANG_IMAGE", default_images.SGLANG)
SLIPWAY_TENSORRT_LLM_IMAGE = env.text("SLIPWAY_TENSORRT_LLM_IMAGE", default_images.TENSORRT_LLM)
SLIPWAY_STORAGE_INITIALIZER_IMAGE = env.text(
    "SLIPWAY_STORAGE_INITIALIZER_IMAGE", default_images.STORAGE_INITIALIZER
)
# What teams may name as an image (fleet.clusters.domain.images has the forms), and as a priority class.
SLIPWAY_ALLOWED_IMAGES = env.text("SLIPWAY_ALLOWED_IMAGES", default_images.ALLOWED)
SLIPWAY_PRIORITY_CLASSES = env.text("SLIPWAY_PRIORITY_CLASSES", "")
# What pods may reach by HTTPS. A bucket's addresses change, so all but link-local ones by default.
SLIPWAY_EGRESS_CIDRS = env.text("SLIPWAY_EGRESS_CIDRS", "0.0.0.0/0, ::/0")
# Where requests of API servers to pods come from, such as golden requests.
SLIPWAY_CONTROL_PLANE_CIDRS = env.text("SLIPWAY_CONTROL_PLANE_CIDRS", "")
# Empty: found in each cluster.
SLIPWAY_PROMETHEUS_NAMESPACES = env.text("SLIPWAY_PROMETHEUS_NAMESPACES", "")
# Prometheus as the KEDA of a cluster reaches it; autoscaling by queue or latency queries it.
_SCALING_PROMETHEUS = "http://prometheus-operated.monitoring:9090"
SLIPWAY_SCALING_PROMETHEUS_URL = env.text("SLIPWAY_SCALING_PROMETHEUS_URL", _SCALING_PROMETHEUS)
SLIPWAY_MODEL_CACHE_NODE_GROUP = env.text("SLIPWAY_MODEL_CACHE_NODE_GROUP", "gpu")
# The IAM role with which pods of a team on EKS read its models (IRSA), with {team}. Empty is none.
SLIPWAY_SERVING_ROLE_ARN = env.text("SLIPWAY_SERVING_ROLE_ARN", "")
if SLIPWAY_SERVING_ROLE_ARN and "{team}" not in SLIPWAY_SERVING_ROLE_ARN:
    raise env.BadEnvironment(
        "SLIPWAY_SERVING_ROLE_ARN names one role for all teams, which could read every team's models. "
        "Write {team} in place of the team's short name: arn:aws:iam::…:role/slipway-models-{team}."
    )
# Given to pods on clusters of kind local only; elsewhere pods have their own role.
SLIPWAY_LOCAL_S3_KEYS = (env.text("AWS_ACCESS_KEY_ID", ""), env.text("AWS_SECRET_ACCESS_KEY", ""))
# Kubeconfigs and Prometheus tokens of clusters are files in it.
SLIPWAY_CLUSTER_CREDENTIALS_DIR = env.text("SLIPWAY_CLUSTER_CREDENTIALS_DIR", "/etc/slipway")
# Each file in it is the token of one Git repository.
SLIPWAY_GIT_CREDENTIALS_DIR = env.text("SLIPWAY_GIT_CREDENTIALS_DIR", "")
SLIPWAY_DEMO = env.flag("SLIPWAY_DEMO", default=False)
# Messages lead back to the portal by this address; empty leaves the host out.
SLIPWAY_PUBLIC_URL = env.text("SLIPWAY_PUBLIC_URL", (*CSRF_TRUSTED_ORIGINS, "")[0]).rstrip("/")
SLIPWAY_SMTP_URL = env.optional_secret("SLIPWAY_SMTP_URL")
SLIPWAY_SMTP_FROM = env.text("SLIPWAY_SMTP_FROM", "slipway@localhost")
SLIPWAY_NOTIFY_PRIVATE_HOSTS = env.names("SLIPWAY_NOTIFY_PRIVATE_HOSTS")

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False

STATIC_URL = "/static/"
STATIC_ROOT = env.text("SLIPWAY_STATIC_ROOT", str(_STATE_DIR / "var" / "staticfiles"))
STATICFILES_DIRS = [FILES_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG or SLIPWAY_DEMO
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}
WHITENOISE_USE_FINDERS = DEBUG or SLIPWAY_DEMO

SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SLIPWAY_HTTPS = env.flag("SLIPWAY_HTTPS", default=not (DEBUG or SLIPWAY_DEMO))
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = SLIPWAY_HTTPS
_HOST = "__Host-" if SLIPWAY_HTTPS else ""  # browsers keep such cookies to this host and TLS
SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = f"{_HOST}sessionid", f"{_HOST}csrftoken"
# Probes come from inside, without TLS; REST is refused without it.
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$", r"^api/"]
SECURE_HSTS_SECONDS = 31_536_000 if SLIPWAY_HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = SLIPWAY_HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if SLIPWAY_HTTPS else None
X_FRAME_OPTIONS = "DENY"

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "connect-src": [
            "'self'",
            SLIPWAY_S3_BROWSER_ENDPOINT_URL
            or f"https://{SLIPWAY_S3_BUCKET}.s3.{SLIPWAY_S3_REGION}.amazonaws.com",
        ],
        "object-src": ["'none'"],
        "base-uri": ["'none'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
    }
}

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "portal.api.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
        "portal.api.throttling.AnonymousLimit",
    ],
    "DEFAULT_THROTTLE_CLASSES": ["portal.api.throttling.CallerThrottle"],
    "DEFAULT_PERMISSION_CLASSES": [
        "rest_framework.permissions.IsAuthenticated",
        "portal.api.authentication.TokenScope",
        "portal.api.openapi.documented_only.DocumentedOnly",
    ],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "portal.api.responses.Negotiation",
    "DEFAULT_PARSER_CLASSES": ["portal.api.parsing.BoundedJSONParser"],
    "DEFAULT_PAGINATION_CLASS": "portal.api.pagination.CursorPage",
    "DEFAULT_SCHEMA_CLASS": "portal.api.openapi.schema.ProblemSchema",
    "EXCEPTION_HANDLER": "portal.api.problems.exception_handler",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
    "URL_FORMAT_OVERRIDE": None,  # `format` is that of a model; answers are JSON only
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Slipway API",
    "VERSION": "v1",
    "DESCRIPTION": "Models, deployments, rollouts, fleet and costs. The same checks as the web pages.",
    "SERVE_INCLUDE_SCHEMA": False,
    "AUTHENTICATION_WHITELIST": [
        "portal.api.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_NAME_OVERRIDES": enum_names.OVERRIDES,
}
LOGGING = logging_config.build_logging(env.text("SLIPWAY_LOG_FORMAT", "text"))
