// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/pilotkit/pilotkit/configstore"
)

// textRule returns the rule for the strings of a field. Most are names, addresses, paths and the
// like, on a single line: over a control character in nearly all of them Envoy rejects
// configuration that other resources depend on (a route configuration for one in a rewritten path),
// and the remaining ones match nothing. The exceptions are texts that are executed, matched, shown
// or sent as they are.
func textRule(field protoreflect.FieldDescriptor) configstore.TextRule {
	switch field.FullName() {
	case "istio.networking.v1alpha3.Headers.HeaderOperations.SetEntry.value",
		"istio.networking.v1alpha3.Headers.HeaderOperations.AddEntry.value",
		"istio.networking.v1alpha3.HTTPHeader.value":
		return configstore.TextHeaderValue
	case
		// Code, expressions and the configuration of extensions.
		"istio.extensions.v1alpha1.LuaConfig.inline_code",
		"istio.extensions.v1alpha1.WasmConfig.plugin_config",
		"istio.extensions.v1alpha1.WasmPlugin.plugin_config",
		"istio.networking.v1alpha3.EnvoyFilter.Patch.value",
		"istio.telemetry.v1alpha1.AccessLogging.Filter.expression",
		"istio.telemetry.v1alpha1.MetricsOverrides.TagOverride.value",
		// Commands and their variables.
		"istio.extensions.v1alpha1.EnvVar.value",
		"istio.networking.v1alpha3.ExecHealthCheckConfig.command",
		"istio.networking.v1beta1.ProxyConfig.EnvironmentVariablesEntry.value",
		// Keys in formats of many lines.
		"istio.extensions.v1alpha1.WasmConfig.verification_key",
		"istio.extensions.v1alpha1.WasmPlugin.verification_key",
		"istio.security.v1beta1.JWTRule.jwks",
		// Texts, and values that are compared with texts.
		"istio.networking.v1alpha3.EnvoyFilter.ProxyMatch.MetadataEntry.value",
		"istio.networking.v1alpha3.EnvoyFilter.ProxyMatch.proxy_version",
		"istio.networking.v1alpha3.HTTPBody.string",
		"istio.networking.v1alpha3.RegexRewrite.match",
		"istio.networking.v1alpha3.StringMatch.exact",
		"istio.networking.v1alpha3.StringMatch.prefix",
		"istio.networking.v1alpha3.StringMatch.regex",
		"istio.networking.v1alpha3.WorkloadGroup.ObjectMeta.AnnotationsEntry.value",
		"istio.telemetry.v1alpha1.Tracing.Environment.default_value",
		"istio.telemetry.v1alpha1.Tracing.Formatter.value",
		"istio.telemetry.v1alpha1.Tracing.Literal.value",
		"istio.telemetry.v1alpha1.Tracing.RequestHeader.default_value":
		return configstore.TextAny
	default:
		return configstore.TextLine
	}
}
