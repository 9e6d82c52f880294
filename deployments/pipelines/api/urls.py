from django.urls import URLPattern, path

from deployments.changes.api.views import ChangeAddresses
from deployments.models import Pipeline
from deployments.pipelines.api import views
from deployments.pipelines.api.serializers import (
    PipelineChangeFilterSerializer,
    PipelineChangeSerializer,
)

urlpatterns: list[URLPattern] = [
    path("pipelines", views.PipelinesView.as_view(), name="pipelines"),
    path("pipelines/preview", views.PipelinePreviewView.as_view(), name="pipeline-preview"),
    path("pipelines/<int:pipeline_id>", views.PipelineView.as_view(), name="pipeline"),
    path(
        "pipelines/<int:pipeline_id>/retire",
        views.RetirePipelineView.as_view(),
        name="retire-pipeline",
    ),
    path(
        "pipelines/<int:pipeline_id>/stop",
        views.StopPipelineView.as_view(),
        name="stop-pipeline",
    ),
    path(
        "pipelines/<int:pipeline_id>/request-stop",
        views.RequestPipelineStopView.as_view(),
        name="request-pipeline-stop",
    ),
    path(
        "pipelines/<int:pipeline_id>/start",
        views.StartPipelineView.as_view(),
        name="start-pipeline",
    ),
    *ChangeAddresses(
        subject=Pipeline,
        serializer=PipelineChangeSerializer,
        listed=PipelineChangeSerializer,
        filters=PipelineChangeFilterSerializer,
        path="pipeline-changes",
        name="pipeline_change",
        tags=views.TAGS,
    ).urls(),
]
