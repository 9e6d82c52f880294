from django.urls import URLPattern, path

from deployments.pipelines.api import views

_CHANGE = "pipeline-changes/<int:pipeline_change_id>"

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
        "pipelines/<int:pipeline_id>/start",
        views.StartPipelineView.as_view(),
        name="start-pipeline",
    ),
    path("pipeline-changes", views.PipelineChangesView.as_view(), name="pipeline-changes"),
    path(_CHANGE, views.PipelineChangeView.as_view(), name="pipeline-change"),
    path(f"{_CHANGE}/approve", views.ApprovePipelineView.as_view(), name="approve-pipeline"),
    path(f"{_CHANGE}/reject", views.RejectPipelineView.as_view(), name="reject-pipeline"),
    path(f"{_CHANGE}/withdraw", views.WithdrawPipelineView.as_view(), name="withdraw-pipeline"),
]
