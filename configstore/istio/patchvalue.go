// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"
	networking "istio.io/api/networking/v1alpha3"
)

// checkPatchValue checks a value that is merged into or added to Envoy's configuration.
func checkPatchValue(at *field, to networking.EnvoyFilter_ApplyTo, patch *networking.EnvoyFilter_Patch, types TypeResolver) {
	if patch.Value == nil || patch.Operation == networking.EnvoyFilter_Patch_REMOVE {
		return
	}
	warnUntyped(at, to, patch)
	before := at.out.mark()
	checkTypes(at, patch.Value, types)
	if types != nil && at.out.mark() == before {
		checkDecodes(at, to, patch.Value, types)
	}
}

// warnUntyped warns about an added filter that has only a name, because Envoy does not find filters
// by their names.
func warnUntyped(at *field, to networking.EnvoyFilter_ApplyTo, patch *networking.EnvoyFilter_Patch) {
	switch to {
	case networking.EnvoyFilter_NETWORK_FILTER, networking.EnvoyFilter_HTTP_FILTER, networking.EnvoyFilter_LISTENER_FILTER:
	default:
		return
	}
	for _, name := range []string{"typed_config", "typedConfig", "config_discovery", "configDiscovery"} {
		if patch.Value.Fields[name] != nil {
			return
		}
	}
	if patch.Operation != networking.EnvoyFilter_Patch_MERGE {
		at.warn("is a filter without typed_config, which Envoy does not find by its name")
	}
}

// checkTypes checks, wherever in a value something names its type, that it does so
// as Envoy wants it. Fields are walked in the order of their names.
func checkTypes(at *field, value *structpb.Struct, types TypeResolver) {
	fields := value.GetFields()
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		place := at.child(name)
		checkTypesOf(place, fields[name], types)
		if name != "typed_config" && name != "typedConfig" {
			continue
		}
		config, ok := fields[name].GetKind().(*structpb.Value_StructValue)
		if !ok {
			place.refuse("must be an object with @type")
		} else if config.StructValue.GetFields()["@type"] == nil {
			place.child("@type").refuse("is required")
		}
	}
	if name := fields["@type"]; name != nil {
		checkTypeURL(at.child("@type"), name.GetStringValue(), types)
	}
}

func checkTypesOf(at *field, value *structpb.Value, types TypeResolver) {
	switch kind := value.GetKind().(type) {
	case *structpb.Value_StructValue:
		checkTypes(at, kind.StructValue, types)
	case *structpb.Value_ListValue:
		for i, element := range kind.ListValue.GetValues() {
			checkTypesOf(&field{out: at.out, parent: at.parent, name: at.name, index: i}, element, types)
		}
	}
}

// checkTypeURL checks the name of a type, "host/package.Message".
func checkTypeURL(at *field, url string, types TypeResolver) {
	slash := strings.LastIndexByte(url, '/')
	name := protoreflect.FullName(url[slash+1:])
	switch {
	case slash < 0 || !name.IsValid():
		at.refuse("must be a type URL such as type.googleapis.com/%s, is %q", "envoy.config.core.v3.Address", url)
	case strings.HasPrefix(string(name), "envoy.") && (strings.Contains(string(name), ".v2.") || strings.Contains(string(name), ".v2alpha.")):
		at.refuse("must be a type of Envoy's API v3, is %q", url)
	case types != nil:
		if _, err := types.FindMessageByURL(url); err != nil {
			at.warn("is %q, which is not known here: the value is not checked", url)
		}
	}
}

// checkDecodes checks that a value is one of the messages that are patched.
// Envoy's and Istio's later versions may know more fields than the types at hand.
func checkDecodes(at *field, to networking.EnvoyFilter_ApplyTo, value *structpb.Struct, types TypeResolver) {
	kind, err := types.FindMessageByName(patchedMessage(to))
	if err != nil {
		return
	}
	text, err := value.MarshalJSON()
	if err != nil {
		at.refuse("must be JSON: %s", cleanError(err))
		return
	}
	lenient := protojson.UnmarshalOptions{Resolver: types, AllowPartial: true, DiscardUnknown: true}
	if err := lenient.Unmarshal(text, kind.New().Interface()); err != nil {
		at.refuse("must be a %s: %s", kind.Descriptor().FullName(), cleanError(err))
		return
	}
	strict := protojson.UnmarshalOptions{Resolver: types, AllowPartial: true}
	if err := strict.Unmarshal(text, kind.New().Interface()); err != nil {
		at.warn("is not a known %s: %s", kind.Descriptor().FullName(), cleanError(err))
	}
}

// patchedMessage returns the message that a patch applies to, or "".
func patchedMessage(to networking.EnvoyFilter_ApplyTo) protoreflect.FullName {
	return map[networking.EnvoyFilter_ApplyTo]protoreflect.FullName{
		networking.EnvoyFilter_LISTENER:            "envoy.config.listener.v3.Listener",
		networking.EnvoyFilter_LISTENER_FILTER:     "envoy.config.listener.v3.ListenerFilter",
		networking.EnvoyFilter_FILTER_CHAIN:        "envoy.config.listener.v3.FilterChain",
		networking.EnvoyFilter_NETWORK_FILTER:      "envoy.config.listener.v3.Filter",
		networking.EnvoyFilter_HTTP_FILTER:         "envoy.extensions.filters.network.http_connection_manager.v3.HttpFilter",
		networking.EnvoyFilter_ROUTE_CONFIGURATION: "envoy.config.route.v3.RouteConfiguration",
		networking.EnvoyFilter_VIRTUAL_HOST:        "envoy.config.route.v3.VirtualHost",
		networking.EnvoyFilter_HTTP_ROUTE:          "envoy.config.route.v3.Route",
		networking.EnvoyFilter_CLUSTER:             "envoy.config.cluster.v3.Cluster",
		networking.EnvoyFilter_EXTENSION_CONFIG:    "envoy.config.core.v3.TypedExtensionConfig",
		networking.EnvoyFilter_BOOTSTRAP:           "envoy.config.bootstrap.v3.Bootstrap",
	}[to]
}

// cleanError returns an error of protobuf without the random parts, which differ between binaries
// on purpose, and without the position, which refers to text that is in no file.
func cleanError(err error) string {
	message := strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\u00a0", " "), "proto: ")
	if _, behind, ok := strings.Cut(message, "(line "); ok {
		if _, problem, ok := strings.Cut(behind, "): "); ok {
			return problem
		}
	}
	return message
}
