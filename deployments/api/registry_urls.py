from django.urls import URLPattern, path

from deployments.api import registry, registry_uploads, registry_versions

_MODEL = "models/<slug:team>/<str:name>"
_VERSION = "versions/<int:version_id>"

urlpatterns: list[URLPattern] = [
    path("models", registry.ModelsView.as_view(), name="models"),
    path(_MODEL, registry.ModelView.as_view(), name="model"),
    path(f"{_MODEL}/aliases", registry.AliasesView.as_view(), name="aliases"),
    path(f"{_MODEL}/aliases/<str:alias>", registry.AliasView.as_view(), name="alias"),
    path(f"{_MODEL}/versions", registry_uploads.ModelVersionsView.as_view(), name="model-versions"),
    path(
        f"{_MODEL}/versions/<int:number>",
        registry_versions.NumberedVersionView.as_view(),
        name="model-version",
    ),
    path(
        f"{_MODEL}/references", registry_versions.ReferencesView.as_view(), name="model-references"
    ),
    path("versions", registry_versions.VersionsView.as_view(), name="versions"),
    path(_VERSION, registry_versions.VersionView.as_view(), name="version"),
    path(f"{_VERSION}/parts", registry_uploads.PartsView.as_view(), name="parts"),
    path(f"{_VERSION}/complete", registry_uploads.CompleteView.as_view(), name="complete"),
    path(f"{_VERSION}/abandon", registry_uploads.AbandonView.as_view(), name="abandon"),
    path(f"{_VERSION}/archive", registry_versions.ArchiveView.as_view(), name="archive"),
    path(f"{_VERSION}/restore", registry_versions.RestoreView.as_view(), name="restore"),
    path(f"{_VERSION}/release", registry_versions.ReleaseView.as_view(), name="release"),
]
