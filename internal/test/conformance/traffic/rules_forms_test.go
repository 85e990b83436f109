// SPDX-License-Identifier: Apache-2.0

package traffic

// t67: Envoys get the successors of deprecated fields, with the same meaning. The recording is
// converted to the new form; names in certificates are converted to the older form, which does not
// have their kind.
func (c *comparison) t67() {
	if c.isGRPC() {
		return
	}
	eachRoute(c.want[routes], func(_, _, route tree) { withoutMaxGRPCTimeout(object(route, "route")) })
	for _, r := range c.want[clusters] {
		withDNSExtension(r)
	}
	for _, s := range []section{clusters, listeners} {
		for _, r := range c.got[s] {
			each(r, withoutKindsOfNames)
		}
	}
}

// withoutMaxGRPCTimeout: without a timeout the header of a call is used, by the field's successor.
// With one, only the timeout is used, because Envoy ignores maxGrpcTimeout if the successor is set.
func withoutMaxGRPCTimeout(action tree) {
	limit := text(action, "maxGrpcTimeout")
	if delete(action, "maxGrpcTimeout"); limit == "0s" {
		action["maxStreamDuration"] = tree{"grpcTimeoutHeaderMax": "0s"}
	}
}

// withDNSExtension: the extension has the fields of the cluster.
func withDNSExtension(cluster tree) {
	kind := text(cluster, "type")
	if kind != "STRICT_DNS" && kind != "LOGICAL_DNS" {
		return
	}
	config := tree{"@type": "type.googleapis.com/envoy.extensions.clusters.dns.v3.DnsCluster"}
	for _, field := range []string{"dnsLookupFamily", "dnsRefreshRate", "dnsJitter", "respectDnsTtl"} {
		if v, ok := cluster[field]; ok {
			config[field] = v
		}
		delete(cluster, field)
	}
	if kind == "LOGICAL_DNS" {
		config["allAddressesInSingleEndpoint"] = true
	}
	delete(cluster, "type")
	cluster["clusterType"] = tree{"name": "envoy.clusters.dns", "typedConfig": config}
}

func withoutKindsOfNames(o tree) {
	typed := objects(o, "matchTypedSubjectAltNames")
	if len(typed) == 0 {
		return
	}
	delete(o, "matchTypedSubjectAltNames")
	var names []tree
	seen := make(map[string]bool)
	for _, m := range typed {
		name := object(m, "matcher")
		if key := compact(name); !seen[key] {
			seen[key] = true
			names = append(names, name)
		}
	}
	setObjects(o, "matchSubjectAltNames", names)
}
