// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"regexp/syntax"
	"slices"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
)

// envoyFilterRules makes the rules for an EnvoyFilter. The values of patches are checked against
// the types known to the resolver; with a nil resolver only the shape of type names is checked.
func envoyFilterRules(types TypeResolver) func(*field, configstore.Config, *networking.EnvoyFilter) {
	return func(spec *field, _ configstore.Config, filter *networking.EnvoyFilter) {
		checkWorkloadSelector(spec, filter.WorkloadSelector)
		checkTargetRefs(spec, filter.WorkloadSelector != nil, "workloadSelector", nil, filter.TargetRefs)
		for at, patch := range elements(spec, "configPatches", filter.ConfigPatches) {
			checkConfigPatch(at, patch, types)
		}
	}
}

func checkConfigPatch(at *field, patch *networking.EnvoyFilter_EnvoyConfigObjectPatch, types TypeResolver) {
	checkEnum(at.child("applyTo"), patch.ApplyTo)
	if patch.ApplyTo == networking.EnvoyFilter_INVALID {
		at.child("applyTo").refuse("is required")
	}
	if patch.Patch == nil {
		at.child("patch").refuse("is required")
	} else {
		checkPatch(at.child("patch"), patch.ApplyTo, patch.Patch)
		checkPatchValue(at.child("patch").child("value"), patch.ApplyTo, patch.Patch, types)
	}
	if patch.Match != nil {
		checkPatchMatch(at.child("match"), patch.ApplyTo, patch.Match)
	}
	if patch.ApplyTo == networking.EnvoyFilter_BOOTSTRAP {
		at.child("applyTo").warn("BOOTSTRAP is deprecated")
	}
}

func checkPatch(at *field, to networking.EnvoyFilter_ApplyTo, patch *networking.EnvoyFilter_Patch) {
	operation := patch.Operation
	checkEnum(at.child("operation"), operation)
	checkEnum(at.child("filterClass"), patch.FilterClass)
	switch operation {
	case networking.EnvoyFilter_Patch_INVALID:
		at.child("operation").refuse("is required")
	case networking.EnvoyFilter_Patch_REMOVE:
		if patch.Value != nil {
			at.child("value").warn("has no effect for operation REMOVE")
		}
	default:
		if patch.Value == nil {
			at.child("value").refuse("is required for operation %s", operation)
		}
	}
	switch {
	case to == networking.EnvoyFilter_BOOTSTRAP && operation != networking.EnvoyFilter_Patch_MERGE:
		at.child("operation").refuse("must be MERGE for applyTo BOOTSTRAP, is %s", operation)
	case to == networking.EnvoyFilter_EXTENSION_CONFIG && operation != networking.EnvoyFilter_Patch_ADD:
		at.child("operation").warn("is %s; only ADD has an effect for applyTo EXTENSION_CONFIG", operation)
	case to == networking.EnvoyFilter_ROUTE_CONFIGURATION && operation != networking.EnvoyFilter_Patch_MERGE &&
		operation != networking.EnvoyFilter_Patch_MERGE_AND_REPLACE_LIST:
		at.child("operation").warn("is %s; only merging has an effect for applyTo ROUTE_CONFIGURATION", operation)
	}
	if patch.FilterClass != networking.EnvoyFilter_Patch_UNSPECIFIED && operation != networking.EnvoyFilter_Patch_ADD {
		at.child("filterClass").warn("has no effect for operation %s, only for ADD", operation)
	}
}

// checkPatchMatch checks that the match is for the objects that are patched.
func checkPatchMatch(at *field, to networking.EnvoyFilter_ApplyTo, match *networking.EnvoyFilter_EnvoyConfigObjectMatch) {
	checkEnum(at.child("context"), match.Context)
	switch version := match.GetProxy().GetProxyVersion(); {
	case version == "":
	case len(version) > maxRegexLength:
		at.child("proxy").child("proxyVersion").warn("is ignored: it has more than %d characters", maxRegexLength)
	default:
		// The control plane matches it.
		if _, err := syntax.Parse(version, syntax.Perl); err != nil {
			at.child("proxy").child("proxyVersion").refuse("must be a regular expression: %v", err)
		}
	}
	waypoint := match.GetWaypoint() != nil
	if waypoint != (match.Context == networking.EnvoyFilter_WAYPOINT) {
		at.child("waypoint").refuse("must be set for context WAYPOINT and for no other, is %s", match.Context)
	}
	switch object := match.ObjectTypes.(type) {
	case *networking.EnvoyFilter_EnvoyConfigObjectMatch_Listener:
		checkAppliesTo(at.child("listener"), to, networking.EnvoyFilter_LISTENER, networking.EnvoyFilter_FILTER_CHAIN,
			networking.EnvoyFilter_NETWORK_FILTER, networking.EnvoyFilter_HTTP_FILTER, networking.EnvoyFilter_LISTENER_FILTER)
		if to != networking.EnvoyFilter_EXTENSION_CONFIG && to != networking.EnvoyFilter_BOOTSTRAP {
			checkListenerMatch(at.child("listener"), to, object.Listener)
		}
	case *networking.EnvoyFilter_EnvoyConfigObjectMatch_RouteConfiguration:
		checkAppliesTo(at.child("routeConfiguration"), to, networking.EnvoyFilter_ROUTE_CONFIGURATION,
			networking.EnvoyFilter_VIRTUAL_HOST, networking.EnvoyFilter_HTTP_ROUTE)
		checkPortNumberIfSet(at.child("routeConfiguration").child("portNumber"), object.RouteConfiguration.GetPortNumber())
		checkEnum(at.child("routeConfiguration").child("vhost").child("route").child("action"),
			object.RouteConfiguration.GetVhost().GetRoute().GetAction())
	case *networking.EnvoyFilter_EnvoyConfigObjectMatch_Cluster:
		checkAppliesTo(at.child("cluster"), to, networking.EnvoyFilter_CLUSTER)
		checkPortNumberIfSet(at.child("cluster").child("portNumber"), object.Cluster.GetPortNumber())
	case *networking.EnvoyFilter_EnvoyConfigObjectMatch_Waypoint:
		checkPortNumberIfSet(at.child("waypoint").child("portNumber"), object.Waypoint.GetPortNumber())
	}
}

func checkAppliesTo(at *field, to networking.EnvoyFilter_ApplyTo, allowed ...networking.EnvoyFilter_ApplyTo) {
	switch {
	case slices.Contains(allowed, to):
	case to == networking.EnvoyFilter_EXTENSION_CONFIG, to == networking.EnvoyFilter_BOOTSTRAP:
		// These are matched by context and proxy alone; Istio 1.30 ignores the rest.
		at.warn("has no effect for applyTo %s", to)
	default:
		at.refuse("must not be set for applyTo %s", to)
	}
}

func checkListenerMatch(at *field, to networking.EnvoyFilter_ApplyTo, match *networking.EnvoyFilter_ListenerMatch) {
	checkPortNumberIfSet(at.child("portNumber"), match.GetPortNumber())
	chain := at.child("filterChain")
	checkPortNumberIfSet(chain.child("destinationPort"), match.GetFilterChain().GetDestinationPort())
	filter := match.GetFilterChain().GetFilter()
	if filter == nil {
		return
	}
	at = chain.child("filter")
	if to == networking.EnvoyFilter_LISTENER || to == networking.EnvoyFilter_FILTER_CHAIN {
		at.warn("has no effect for applyTo %s", to)
	}
	checkSet(at.child("name"), filter.Name, "is required")
	warnDeprecatedFilter(at.child("name"), filter.Name)
	warnDeprecatedFilter(at.child("subFilter").child("name"), filter.GetSubFilter().GetName())
	manages := filter.Name == "" || filter.Name == httpConnectionManager || filter.Name == deprecatedConnectionManager
	switch {
	case filter.SubFilter == nil:
		if to == networking.EnvoyFilter_HTTP_FILTER && !manages {
			at.child("name").warn("is %q; HTTP filters are part of %s only", filter.Name, httpConnectionManager)
		}
		return
	case to != networking.EnvoyFilter_HTTP_FILTER:
		at.child("subFilter").refuse("must not be set for applyTo %s, only for HTTP_FILTER", to)
	case !manages:
		at.child("name").refuse("must be %s together with subFilter, is %q", httpConnectionManager, filter.Name)
	}
	checkSet(at.child("subFilter").child("name"), filter.SubFilter.Name, "is required")
}
