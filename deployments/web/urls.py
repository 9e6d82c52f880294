from deployments.web.delivery_urls import urlpatterns as delivery
from deployments.web.registry_urls import urlpatterns as registry

urlpatterns = [*registry, *delivery]
