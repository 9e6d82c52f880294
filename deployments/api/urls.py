from deployments.api.delivery_urls import urlpatterns as delivery
from deployments.api.pipeline_urls import urlpatterns as pipelines
from deployments.api.quality_urls import urlpatterns as quality
from deployments.api.registry_urls import urlpatterns as registry

urlpatterns = [*registry, *delivery, *pipelines, *quality]
