// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"strings"

	extensions "istio.io/api/extensions/v1alpha1"

	"github.com/pilotkit/pilotkit/configstore"
)

// maxLuaLength is the limit of istio.io/api for inline code.
const maxLuaLength = 64 << 10

// trafficExtensionRules are the rules for a TrafficExtension.
func trafficExtensionRules(spec *field, _ configstore.Config, extension *extensions.TrafficExtension) {
	checkPolicyTarget(spec, extension.Selector, nil, extension.TargetRefs)
	checkEnum(spec.child("phase"), extension.Phase)
	for at, match := range elements(spec, "match", extension.Match) {
		checkTraffic(at, match)
	}
	switch filter := extension.FilterConfig.(type) {
	case *extensions.TrafficExtension_Wasm:
		checkWasm(spec.child("wasm"), filter.Wasm)
	case *extensions.TrafficExtension_Lua:
		checkLua(spec.child("lua").child("inlineCode"), filter.Lua.GetInlineCode())
	default:
		spec.refuse("must have one of wasm, lua")
	}
}

func checkLua(at *field, code string) {
	checkSet(at, code, "is required")
	checkLength(at, code, maxLuaLength)
	if code != "" && !strings.Contains(code, "envoy_on_request") && !strings.Contains(code, "envoy_on_response") {
		at.warn("defines neither envoy_on_request nor envoy_on_response, and is never called")
	}
}
