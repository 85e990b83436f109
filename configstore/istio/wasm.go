// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"net/url"
	"strings"

	extensions "istio.io/api/extensions/v1alpha1"
	apitype "istio.io/api/type/v1beta1"

	"github.com/pilotkit/pilotkit/configstore"
)

// The limits of istio.io/api for Wasm extensions.
const (
	maxPullSecretLength = 253
	maxPluginNameLength = 256
	maxEnvVars          = 256
	maxEnvNameLength    = 256
)

// wasmPluginRules are the rules for a WasmPlugin.
func wasmPluginRules(spec *field, _ configstore.Config, plugin *extensions.WasmPlugin) {
	checkPolicyTarget(spec, plugin.Selector, plugin.TargetRef, plugin.TargetRefs)
	checkEnum(spec.child("phase"), plugin.Phase)
	for at, match := range elements(spec, "match", plugin.Match) {
		checkTraffic(at, match)
	}
	checkWasm(spec, plugin)
}

// traffic is what selects the traffic of an extension.
type traffic interface {
	GetMode() apitype.WorkloadMode
	GetPorts() []*apitype.PortSelector
}

func checkTraffic(at *field, match traffic) {
	checkEnum(at.child("mode"), match.GetMode())
	var seen repetitions[uint32]
	for place, port := range elements(at, "ports", match.GetPorts()) {
		checkPortNumber(place.child("number"), port.Number)
		seen.refuse(place.child("number"), port.Number, place.index, "repeats ports[%d].number: %d")
	}
}

// wasm has the common fields of a WasmPlugin and the Wasm part of a TrafficExtension.
type wasm interface {
	GetUrl() string
	GetSha256() string
	GetImagePullPolicy() extensions.PullPolicy
	GetImagePullSecret() string
	GetPluginName() string
	GetFailStrategy() extensions.FailStrategy
	GetVmConfig() *extensions.VmConfig
	GetType() extensions.PluginType
}

func checkWasm(at *field, w wasm) {
	checkWasmURL(at, w.GetUrl(), w.GetSha256())
	checkEnum(at.child("imagePullPolicy"), w.GetImagePullPolicy())
	checkEnum(at.child("failStrategy"), w.GetFailStrategy())
	checkEnum(at.child("type"), w.GetType())
	checkLength(at.child("imagePullSecret"), w.GetImagePullSecret(), maxPullSecretLength)
	checkLength(at.child("pluginName"), w.GetPluginName(), maxPluginNameLength)
	vm := at.child("vmConfig")
	env := w.GetVmConfig().GetEnv()
	if len(env) > maxEnvVars {
		vm.child("env").refuse("must have at most %d elements, has %d", maxEnvVars, len(env))
	}
	var names repetitions[string]
	for place, variable := range elements(vm, "env", env) {
		checkEnvVar(place, variable)
		names.refuse(place.child("name"), variable.Name, place.index, "repeats env[%d].name: %q")
	}
}

func checkWasmURL(at *field, module, sha256 string) {
	if sha256 != "" && !isSHA256(sha256) {
		at.child("sha256").refuse("must be 64 hexadecimal digits in lower case, is %q", sha256)
	}
	if module == "" {
		at.child("url").refuse("is required")
		return
	}
	scheme, rest, ok := strings.Cut(module, "://")
	if !ok {
		scheme, rest = "oci", module
	}
	known := true
	switch scheme {
	case "file":
		known = rest != ""
	case "oci":
		known = isImage(rest)
	case "http", "https":
		known = isLocation(rest)
	default:
		at.child("url").refuse("must have the scheme oci, http, https or file, is %q", module)
	}
	if !known {
		at.child("url").refuse("must be a URL or the reference of an OCI image, is %q", module)
	}
	if _, digest, ok := strings.Cut(module, "@sha256:"); ok && sha256 != "" && digest != sha256 {
		at.child("sha256").refuse("must be the digest in url, %q, is %q", digest, sha256)
	}
}

// isLocation reports whether s is "host", "host:port", or more after a slash.
func isLocation(s string) bool {
	u, err := url.Parse("http://" + s)
	if err != nil || u.Hostname() == "" || strings.HasSuffix(u.Host, ":") {
		return false
	}
	return u.Host[0] == '[' || strings.Count(u.Host, ":") < 2
}

// isImage reports whether s refers to an OCI image: "registry/name" or just
// "name", which may have a ":tag" and a "@digest".
func isImage(s string) bool {
	name, _, _ := strings.Cut(s, "@")
	if path, tag, ok := strings.Cut(name, ":"); ok && !strings.Contains(name, "/") {
		// Without a registry there is no port.
		return isLocation(path) && isLabelName(tag)
	}
	return isLocation(name)
}

func isSHA256(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isDigit(c) && (c < 'a' || c > 'f') {
			return false
		}
	}
	return len(s) == 64
}

func checkEnvVar(at *field, variable *extensions.EnvVar) {
	checkEnum(at.child("valueFrom"), variable.ValueFrom)
	if !isVariableName(variable.Name) {
		at.child("name").refuse("must be the name of an environment variable, is %q", variable.Name)
	}
	checkLength(at.child("name"), variable.Name, maxEnvNameLength)
	checkLength(at.child("value"), variable.Value, maxVariableLength)
	if variable.ValueFrom == extensions.EnvValueSource_HOST {
		checkUnset(at.child("value"), variable.Value, "must not be set for valueFrom HOST")
	}
}

func checkLength(at *field, value string, limit int) {
	if len(value) > limit {
		at.refuse("must have at most %d characters, has %d", limit, len(value))
	}
}
