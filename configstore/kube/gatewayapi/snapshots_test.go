// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"fmt"
	"maps"
	"strings"
	"sync"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

var configKinds = []configstore.GroupVersionKind{istio.Gateway, istio.VirtualService, istio.DestinationRule}

// diffSnapshots compares all parts of snapshots.
func diffSnapshots(a, b *Snapshot) string {
	var out string
	for _, kind := range configKinds {
		out += cmp.Diff(a.Configs(kind), b.Configs(kind), protocmp.Transform())
	}
	return out + cmp.Diff(maps.Collect(a.Statuses()), maps.Collect(b.Statuses()))
}

// checkUpdates checks that exactly the reported changes happened, and that no earlier snapshot was
// modified.
func (s *system) checkUpdates(when string) []string {
	var out []string
	for _, u := range s.updates {
		for _, change := range u.Changes {
			if wrong := invalid(change.Curr); change.Event != configstore.EventDelete && wrong != "" {
				out = append(out, when+", "+change.Curr.Key().String()+" is invalid: "+wrong)
			}
		}
		replayed := map[configstore.ConfigKey]*configstore.Config{}
		for _, kind := range configKinds {
			for _, c := range u.Before.Configs(kind) {
				replayed[c.Key()] = c
			}
		}
		for _, change := range u.Changes {
			key := change.Curr.Key()
			before := replayed[key]
			switch {
			case change.Event == configstore.EventAdd && before == nil, change.Event == configstore.EventUpdate && before == change.Old:
				replayed[key] = change.Curr
			case change.Event == configstore.EventDelete && before == change.Curr:
				delete(replayed, key)
			default:
				out = append(out, fmt.Sprintf("%s: %v of %v, before there was %v", when, change.Event, key, before))
			}
		}
		after := map[configstore.ConfigKey]*configstore.Config{}
		for _, kind := range configKinds {
			for _, c := range u.After.Configs(kind) {
				after[c.Key()] = c
			}
		}
		if !maps.Equal(replayed, after) {
			out = append(out, when+": the changes do not lead from the state before to that after")
		}
	}
	return out
}

var knownSchemas = sync.OnceValue(func() configstore.Schemas { return istio.Schemas() })

// invalid returns the violations of a config by its schema. It ignores parts that users may not
// write: names with a tilde, our annotations, the empty destination, for which the proxy responds
// with 500, and the server that no namespace may use.
func invalid(c *configstore.Config) string {
	schema, _ := knownSchemas().Find(c.GroupVersionKind)
	bare := *c
	bare.Annotations = nil
	_, violations := schema.Validate(bare)
	var out []string
	for _, v := range violations {
		text := v.String()
		ours := strings.HasPrefix(text, "metadata.name:") || strings.HasPrefix(text, "spec.gateways[") ||
			strings.HasSuffix(text, "destination.host: is required") || strings.Contains(text, `is "~/`)
		if !ours {
			out = append(out, text)
		}
	}
	return strings.Join(out, "; ")
}
