// Package azure stands for KEDA's clients of Azure, which this build leaves out.
package azure

import (
	"errors"
	"net/http"

	"github.com/go-logr/logr"

	kedav1alpha1 "github.com/kedacore/keda/v2/apis/keda/v1alpha1"
)

var errLeftOut = errors.New("this build of KEDA has no Azure")

// TryAndGetAzureManagedPrometheusHTTPRoundTripper has no transport for a Prometheus elsewhere.
func TryAndGetAzureManagedPrometheusHTTPRoundTripper(
	_ logr.Logger, identity kedav1alpha1.AuthPodIdentity, _ map[string]string,
) (http.RoundTripper, error) {
	if identity.Provider == kedav1alpha1.PodIdentityProviderAzureWorkload {
		return nil, errLeftOut
	}
	return nil, nil
}
