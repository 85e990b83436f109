// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"errors"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// ErrLocal is wrapped by the error of a kubeconfig that would run a program or read a file of this
// host.
var ErrLocal = errors.New("the kubeconfig uses what is on this host")

// restConfig parses a kubeconfig.
func restConfig(data []byte, allowLocal bool) (*rest.Config, error) {
	config, err := clientcmd.Load(data)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	if !allowLocal {
		if err := checkLocal(config); err != nil {
			return nil, err
		}
	}
	out, err := clientcmd.NewDefaultClientConfig(*config, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("use kubeconfig: %w", err)
	}
	return out, nil
}

// checkLocal rejects a kubeconfig that runs programs or reads files.
func checkLocal(config *api.Config) error {
	for name, user := range config.AuthInfos {
		switch {
		case user.Exec != nil:
			return fmt.Errorf("user %q: exec plugin: %w", name, ErrLocal)
		case user.AuthProvider != nil:
			return fmt.Errorf("user %q: auth-provider: %w", name, ErrLocal)
		case user.TokenFile != "" || user.ClientCertificate != "" || user.ClientKey != "":
			return fmt.Errorf("user %q: a file: %w", name, ErrLocal)
		}
	}
	for name, cluster := range config.Clusters {
		if cluster.CertificateAuthority != "" {
			return fmt.Errorf("cluster %q: a file: %w", name, ErrLocal)
		}
	}
	return nil
}
