// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
)

// checkedCluster returns the cluster of a place as a proxy receives it, or nil if there is none, and
// the errors for the cluster, or parts of its policy, that are left out. A cluster with an invalid
// policy is left out as a whole, because without its TLS settings the proxy would connect in plain
// text.
func (st *state) checkedCluster(p *proxy, name string, at *clusterPlace) (*clusterv3.Cluster, []error) {
	if at != nil {
		if err := st.noRoomForPolicy(at.rule, at.host); err != nil {
			return nil, []error{st.clusterLeftOut(p, at, noCluster(name, err))}
		}
	}
	c, err := xdsbuild.Try(p.client(), func() *clusterv3.Cluster { return st.cluster(p, name, at) })
	if err != nil {
		return nil, []error{st.clusterLeftOut(p, at, noCluster(name, err))}
	}
	if at == nil || at.rule == nil {
		return c, nil
	}
	var missing []error
	if at.subset == nil {
		missing = st.noRoomForSubsets(at.rule, at.host)
		if first, err := st.noRoomForHash(at.rule, at.host); first {
			missing = append(missing, st.clusterLeftOut(p, at, err))
		}
	}
	hash := xdsbuild.ConsistentHash(at.rule.trafficPolicy(), at.port.Number, at.subset.GetTrafficPolicy())
	if err := xdsbuild.CheckHash(hash); err != nil {
		missing = append(missing, st.clusterLeftOut(p, at, notHashed(name, err)))
	}
	return c, missing
}

// clusterLeftOut adds to an error the object and field that the policy of a cluster comes from. A
// cluster without a policy object keeps the error as it is.
func (st *state) clusterLeftOut(p *proxy, at *clusterPlace, reason error) error {
	if at == nil {
		return reason
	}
	if at.rule == nil {
		if policies, _ := st.policiesOf(p, at.host, at.port.of.Attributes.Namespace); len(policies) > 0 {
			return leftOut(policies[0].config, "spec.trafficPolicy", reason)
		}
		return reason
	}
	owner, field := at.rule.owner(at.subset)
	return leftOut(owner.config, field, reason)
}

// owner returns the DestinationRule and the field that define a subset. For a nil subset it returns
// the owner of the policy of all subsets.
func (m *rule) owner(subset *networking.Subset) (owner *destinationRule, field string) {
	for _, r := range m.of {
		for i, s := range r.spec.GetSubsets() {
			if s == subset {
				return r, element("spec.subsets", i)
			}
		}
		if subset == nil && r.spec.GetTrafficPolicy() != nil {
			return r, "spec.trafficPolicy"
		}
	}
	return m.of[0], ""
}
