// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

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
	hash := xdsbuild.ConsistentHash(at.rule.TrafficPolicy(), at.port.Number, at.subset.GetTrafficPolicy())
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
		if policies, _ := st.PoliciesOf(&p.Proxy, at.host, at.port.Of.Attributes.Namespace); len(policies) > 0 {
			return leftOut(policies[0].Config, "spec.trafficPolicy", reason)
		}
		return reason
	}
	owner, field := at.rule.Owner(at.subset)
	return leftOut(owner.Config, field, reason)
}
