// SPDX-License-Identifier: Apache-2.0

package istio

import (
	proxyconfig "istio.io/api/networking/v1beta1"

	"github.com/pilotkit/pilotkit/configstore"
)

// maxVariableLength is the limit of istio.io/api for the values of environment
// variables.
const maxVariableLength = 2048

// proxyConfigRules are the rules for a ProxyConfig.
func proxyConfigRules(spec *field, _ configstore.Config, config *proxyconfig.ProxyConfig) {
	checkPolicySelector(spec.child("selector"), config.Selector)
	checkNotNegative(spec.child("concurrency"), config.GetConcurrency().GetValue())
	for at, value := range entries(spec, "environmentVariables", config.EnvironmentVariables) {
		if !isVariableName(at.key) {
			at.refuse("key must be the name of an environment variable")
		}
		if len(value) > maxVariableLength {
			at.refuse("must have at most %d characters, has %d", maxVariableLength, len(value))
		}
	}
	if kind := config.GetImage().GetImageType(); kind != "" && !isLabelName(kind) {
		spec.child("image").child("imageType").warn("is %q, which no image tag can end in", kind)
	}
}

// isVariableName reports whether a process can have a variable of that name.
func isVariableName(name string) bool {
	for i := range len(name) {
		if name[i] == '=' || name[i] == 0 {
			return false
		}
	}
	return name != ""
}
