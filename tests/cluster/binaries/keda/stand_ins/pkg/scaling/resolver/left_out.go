package resolver

import (
	"context"
	"errors"

	"github.com/go-logr/logr"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kedav1alpha1 "github.com/kedacore/keda/v2/apis/keda/v1alpha1"
	"github.com/kedacore/keda/v2/pkg/scalers/authentication"
)

var errLeftOut = errors.New("this build of KEDA reads Secrets only")

// leftOut stands for the secret managers that this build leaves out.
type leftOut struct{}

func (leftOut) Initialize(
	context.Context, client.Client, logr.Logger, string, corev1listers.SecretLister,
) error {
	return errLeftOut
}

func (leftOut) Read(context.Context, string, string) (string, error) {
	return "", errLeftOut
}

func NewAzureKeyVaultHandler(*kedav1alpha1.AzureKeyVault) leftOut {
	return leftOut{}
}

func NewGCPSecretManagerHandler(*kedav1alpha1.GCPSecretManager) leftOut {
	return leftOut{}
}

type leftOutVault struct{}

func NewHashicorpVaultHandler(
	*kedav1alpha1.HashiCorpVault, *authentication.AuthClientSet, string,
) leftOutVault {
	return leftOutVault{}
}

func (leftOutVault) Initialize(logr.Logger) error {
	return errLeftOut
}

func (leftOutVault) ResolveSecrets(
	[]kedav1alpha1.VaultSecret,
) ([]kedav1alpha1.VaultSecret, error) {
	return nil, errLeftOut
}

func (leftOutVault) Stop() {}
