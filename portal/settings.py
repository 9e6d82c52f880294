"""Django settings. Everything a deployment may change is read from the environment here, only here.

docs/settings.md lists the variables. `make demo` sets all of them to embedded parts.
"""

from __future__ import annotations

from pathlib import Path

from deployments.approvals.domain.rules import RequiredRole
from deployments.guards.domain.answer_metrics import Kind as ObservationKind
from deployments.guards.domain.evidence import Verdict
from deployments.pipelines.domain.pipeline_spec import NodeKind
from deployments.plans.domain.rollout_plan import PlanKind
from deployments.sizing.domain.memory import BITS
from deployments.spec.domain.model_settings import PRECISIONS
from deployments.spec.domain.scaling import SCALING_KINDS
from deployments.states import (
    ChangeKind,
    ChangeState,
    DeploymentState,
    Environment,
    PipelineChangeKind,
    VersionState,
)
from portal import env

BASE_DIR = Path(__file__).resolve().parent.parent

SECRET_KEY = env.secret("SLIPWAY_SECRET_KEY")
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
    "django_htmx",
    "lucide",
    "csp",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
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
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "portal.api.border.NulMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "portal.ui.middleware.FragmentCacheMiddleware",
    "portal.ui.middleware.CurrentTeamMiddleware",
    "portal.ui.middleware.DomainErrorMiddleware",
]

ROOT_URLCONF = "portal.urls"
WSGI_APPLICATION = "portal.wsgi.application"
ASGI_APPLICATION = "portal.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "portal.ui.context.frame",
            ],
            "builtins": ["lucide.templatetags.lucide", "portal.ui.templatetags.slipway"],
        },
    },
]

DATABASES = {"default": env.database("SLIPWAY_DATABASE_URL")}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
AUTH_USER_MODEL = "accounts.User"
# Argon2id costs an attacker memory, and a sign-in a fraction of the processor time of PBKDF2.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "sign-in"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "sign-in"

SLIPWAY_REDIS_URL = env.secret("SLIPWAY_REDIS_URL")
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": SLIPWAY_REDIS_URL,
        # A cache that hangs must not delay a sign-in.
        "OPTIONS": {"socket_timeout": 2, "socket_connect_timeout": 2},
    }
}

# X-Forwarded-For is believed from these networks only.
SLIPWAY_TRUSTED_PROXIES = env.networks("SLIPWAY_TRUSTED_PROXIES")
SLIPWAY_API_REQUESTS_PER_MINUTE = env.integer("SLIPWAY_API_REQUESTS_PER_MINUTE", 1200)
SLIPWAY_API_ANONYMOUS_PER_MINUTE = env.integer("SLIPWAY_API_ANONYMOUS_PER_MINUTE", 60)

SLIPWAY_S3_BUCKET = env.text("SLIPWAY_S3_BUCKET", "slipway-models")
SLIPWAY_S3_REGION = env.text("SLIPWAY_S3_REGION", "us-east-1")
# Empty means AWS itself. The browser endpoint differs only when clients reach S3 by another name.
SLIPWAY_S3_ENDPOINT_URL = env.text("SLIPWAY_S3_ENDPOINT_URL", "")
SLIPWAY_S3_BROWSER_ENDPOINT_URL = env.text(
    "SLIPWAY_S3_BROWSER_ENDPOINT_URL", SLIPWAY_S3_ENDPOINT_URL
)
SLIPWAY_MAX_UPLOAD_BYTES = env.integer("SLIPWAY_MAX_UPLOAD_BYTES", 50 * 2**30)
# Of one team at a time, and altogether; promised bytes count from the start of an upload.
SLIPWAY_TEAM_OPEN_UPLOADS = env.integer("SLIPWAY_TEAM_OPEN_UPLOADS", 20)
SLIPWAY_TEAM_STORAGE_BYTES = env.integer("SLIPWAY_TEAM_STORAGE_BYTES", 2 * 2**40)
# What one examination of an uploaded file may use before the file's own size is added.
SLIPWAY_EXAMINATION_MEMORY_MIB = env.integer("SLIPWAY_EXAMINATION_MEMORY_MIB", 1024)
SLIPWAY_EXAMINATION_CPU_SECONDS = env.integer("SLIPWAY_EXAMINATION_CPU_SECONDS", 30)
SLIPWAY_TRITON_IMAGE = env.text("SLIPWAY_TRITON_IMAGE", "nvcr.io/nvidia/tritonserver:26.07-py3")
SLIPWAY_TRITON_VLLM_IMAGE = env.text(
    "SLIPWAY_TRITON_VLLM_IMAGE", "nvcr.io/nvidia/tritonserver:26.07-vllm-python-py3"
)
SLIPWAY_VLLM_IMAGE = env.text("SLIPWAY_VLLM_IMAGE", "vllm/vllm-openai:v0.11.0")
SLIPWAY_STORAGE_INITIALIZER_IMAGE = env.text(
    "SLIPWAY_STORAGE_INITIALIZER_IMAGE", "kserve/storage-initializer:v0.20.0"
)
# What teams may name as an image (fleet.clusters.domain.images has the forms), and as a priority class.
SLIPWAY_ALLOWED_IMAGES = env.text(
    "SLIPWAY_ALLOWED_IMAGES", "nvcr.io/nvidia/tritonserver, vllm/vllm-openai, kserve/*"
)
SLIPWAY_PRIORITY_CLASSES = env.text("SLIPWAY_PRIORITY_CLASSES", "")
# What pods may reach by HTTPS. A bucket's addresses change, so all but link-local ones by default.
SLIPWAY_EGRESS_CIDRS = env.text("SLIPWAY_EGRESS_CIDRS", "0.0.0.0/0, ::/0")
# Where requests of API servers to pods come from: golden requests and trials take that way.
SLIPWAY_CONTROL_PLANE_CIDRS = env.text("SLIPWAY_CONTROL_PLANE_CIDRS", "")
# Prometheus as the KEDA of a cluster reaches it; autoscaling by queue or latency queries it.
SLIPWAY_SCALING_PROMETHEUS_URL = env.text(
    "SLIPWAY_SCALING_PROMETHEUS_URL", "http://prometheus-operated.monitoring:9090"
)
# The LocalModelNodeGroup of the clusters whose nodes cache models.
SLIPWAY_MODEL_CACHE_NODE_GROUP = env.text("SLIPWAY_MODEL_CACHE_NODE_GROUP", "gpu")
# The IAM role with which pods of a team on EKS read its models (IRSA): {team} becomes the team's
# short name. Empty leaves service accounts without one.
SLIPWAY_SERVING_ROLE_ARN = env.text("SLIPWAY_SERVING_ROLE_ARN", "")
if SLIPWAY_SERVING_ROLE_ARN and "{team}" not in SLIPWAY_SERVING_ROLE_ARN:
    raise env.BadEnvironment(
        "SLIPWAY_SERVING_ROLE_ARN names one role for all teams, which could read every team's models. "
        "Write {team} in place of the team's short name: arn:aws:iam::…:role/slipway-models-{team}."
    )
# Given to pods on clusters of kind local only; elsewhere pods have their own role.
SLIPWAY_LOCAL_S3_KEYS = (
    env.text("AWS_ACCESS_KEY_ID", ""),
    env.text("AWS_SECRET_ACCESS_KEY", ""),
)
# Kubeconfigs and Prometheus tokens of clusters are files in it, and nowhere else.
SLIPWAY_CLUSTER_CREDENTIALS_DIR = env.text("SLIPWAY_CLUSTER_CREDENTIALS_DIR", "/etc/slipway")
# Each file in it is the token of one Git repository; teams are given them by name.
SLIPWAY_GIT_CREDENTIALS_DIR = env.text("SLIPWAY_GIT_CREDENTIALS_DIR", "")
SLIPWAY_DEMO = env.flag("SLIPWAY_DEMO", default=False)
# Messages lead back to the portal by this address; empty leaves the host out.
SLIPWAY_PUBLIC_URL = env.text("SLIPWAY_PUBLIC_URL", (*CSRF_TRUSTED_ORIGINS, "")[0])
SLIPWAY_SMTP_URL = env.optional_secret("SLIPWAY_SMTP_URL")
SLIPWAY_SMTP_FROM = env.text("SLIPWAY_SMTP_FROM", "slipway@localhost")
# Hosts inside the network that webhooks may go to; the portal refuses all others.
SLIPWAY_NOTIFY_PRIVATE_HOSTS = env.names("SLIPWAY_NOTIFY_PRIVATE_HOSTS")

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False

STATIC_URL = "/static/"
STATIC_ROOT = env.text("SLIPWAY_STATIC_ROOT", str(BASE_DIR / "var" / "staticfiles"))
STATICFILES_DIRS = [BASE_DIR / "static"]
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
# Probes come from inside, without TLS.
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]
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
            *filter(
                None,
                [
                    SLIPWAY_S3_BROWSER_ENDPOINT_URL
                    or f"https://{SLIPWAY_S3_BUCKET}.s3.{SLIPWAY_S3_REGION}.amazonaws.com"
                ],
            ),
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
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["portal.api.parsing.BoundedJSONParser"],
    "DEFAULT_PAGINATION_CLASS": "portal.api.pagination.CursorPage",
    "DEFAULT_SCHEMA_CLASS": "portal.api.schema.ProblemSchema",
    "EXCEPTION_HANDLER": "portal.api.problems.exception_handler",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
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
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_NAME_OVERRIDES": {
        "VersionState": [state.value for state in VersionState],
        "ChangeState": [state.value for state in ChangeState],
        "DeploymentState": [state.value for state in DeploymentState],
        "StepState": ["done", "current", "ahead"],
        "NumberFormat": list(BITS),
        "ChangeKind": [kind.value for kind in ChangeKind],
        "Environment": [environment.value for environment in Environment],
        "Verdict": [verdict.value for verdict in Verdict],
        "MemberRole": "portal.accounts.models.Role",
        "ApproverRole": [role.value for role in RequiredRole],
        "ObservationKind": [kind.value for kind in ObservationKind],
        "PlanKind": [kind.value for kind in PlanKind],
        "PipelineChangeKind": [kind.value for kind in PipelineChangeKind],
        "PipelineNodeKind": [kind.value for kind in NodeKind],
        "ScalingKind": list(SCALING_KINDS),
        "ModelPrecision": list(PRECISIONS),
    },
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "handlers": {
        "stderr": {"class": "logging.StreamHandler", "formatter": "line"},
        "nowhere": {"class": "logging.NullHandler"},
    },
    # Apprise names addresses of channels, which are secrets, in what it logs.
    "loggers": {
        "apprise": {"handlers": ["nowhere"], "propagate": False},
        "urllib3": {"level": "INFO"},
    },
    "root": {"handlers": ["stderr"], "level": "INFO"},
}
