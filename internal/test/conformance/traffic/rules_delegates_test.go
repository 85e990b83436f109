// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"strings"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
)

// t16 changes a root VirtualService so that the combinations of matches that the recorded Istio
// dropped are dropped by us too, because the recording does not show their effect. delegates are
// all of the scenario.
func t16(root configstore.Config, delegates []*configstore.Config) configstore.Config {
	spec, ok := root.Spec.(*networking.VirtualService)
	if !ok || len(spec.GetHosts()) == 0 {
		return root
	}
	changed := proto.CloneOf(spec)
	for _, rule := range changed.GetHttp() {
		namespace := rule.GetDelegate().GetNamespace()
		if namespace == "" {
			namespace = root.Namespace
		}
		for _, d := range delegates {
			if rule.GetDelegate() != nil && d.Name == rule.GetDelegate().GetName() && d.Namespace == namespace {
				neverMatch(rule.GetMatch(), d.Spec.(*networking.VirtualService))
			}
		}
	}
	root.Spec = changed
	return root
}

// neverMatch changes matches of a root that, together with those of a delegate, were considered a
// conflict: a source namespace that the delegate does not have, and a header whose presence both
// require.
func neverMatch(matches []*networking.HTTPMatchRequest, delegate *networking.VirtualService) {
	namesSource, conditional := false, true
	present := make(map[string]bool)
	for _, rule := range delegate.GetHttp() {
		conditional = conditional && len(rule.GetMatch()) > 0
		for _, m := range rule.GetMatch() {
			namesSource = namesSource || m.GetSourceNamespace() != ""
			for name, value := range m.GetHeaders() {
				if value.GetMatchType() == nil {
					present[strings.ToLower(name)] = true
				}
			}
		}
	}
	for _, m := range matches {
		if m.GetSourceNamespace() != "" && !namesSource && conditional {
			m.SourceNamespace = "a-namespace-of-no-proxy"
		}
		for name, value := range m.GetHeaders() {
			if value.GetMatchType() == nil && present[strings.ToLower(name)] {
				value.MatchType = &networking.StringMatch_Exact{Exact: "never"}
			}
		}
	}
}

// delegatesOf returns all VirtualServices without hosts of a scenario.
func delegatesOf(s *scenario) []*configstore.Config {
	var out []*configstore.Config
	for _, st := range s.Steps {
		if st.Apply == nil {
			continue
		}
		for _, doc := range parse(*st.Apply) {
			if vs, ok := doc.Config.Spec.(*networking.VirtualService); ok && len(vs.GetHosts()) == 0 {
				out = append(out, &doc.Config)
			}
		}
	}
	return out
}
