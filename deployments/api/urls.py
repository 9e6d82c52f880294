from deployments.api.delivery_urls import urlpatterns as delivery
from deployments.api.registry_urls import urlpatterns as registry

urlpatterns = [*registry, *delivery]
