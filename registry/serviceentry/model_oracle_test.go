// SPDX-License-Identifier: Apache-2.0

package serviceentry_test

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	meta "istio.io/api/meta/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/registry"
)

// world is everything that the registry reads. From it the oracle computes what
// the registry should show, in the plainest way and from scratch: it lists
// everything, filters and sorts, and shares no code with the registry.
type world struct {
	cluster     registry.ClusterID
	trustDomain string
	// visibility is that of all namespaces without the label of visibleIf.
	visibility registry.Visibility
	entries    map[string]configstore.Config
	workloads  map[string]configstore.Config
	foreign    map[registry.WorkloadKey]*registry.WorkloadInstance
	// namespaces holds the annotation for the traffic distribution.
	namespaces map[string]string
	// As in the options of the registry.
	workloadEntriesOnly, ignoreHealth, byHash, askNetworks bool
}

func newWorld(cluster registry.ClusterID) *world {
	return &world{
		cluster: cluster, trustDomain: "cluster.local",
		entries: map[string]configstore.Config{}, workloads: map[string]configstore.Config{},
		foreign: map[registry.WorkloadKey]*registry.WorkloadInstance{}, namespaces: map[string]string{},
	}
}

// contribution is one endpoint that one source gives to one host by one entry.
type contribution struct {
	entry    configstore.Config
	host     string
	endpoint registry.Endpoint
	// rank orders the sources at an address: pods, WorkloadEntries, inline
	// endpoints, the host itself.
	rank int
	// name tells sources of one rank apart.
	name string
	// labelName orders them for the labels of a proxy.
	labelName string
}

const (
	rankPod = iota
	rankWorkloadEntry
	rankInline
	rankHost
)

// outcome is what the registry should show, in texts that can be compared.
type outcome struct {
	// services are by "namespace/host".
	services map[string][]string
	// endpoints are by "namespace/host", each once, sorted. A host that exists
	// without endpoints has an empty list.
	endpoints map[string][]string
	// dns holds the hosts that have an endpoint of an entry with DNS resolution.
	dns map[string]bool
	// announced are the WorkloadEntries that other registries may know, by
	// "namespace/name".
	announced map[string]string
	all       []contribution
}

func (w *world) outcome() *outcome {
	o := &outcome{
		services: map[string][]string{}, endpoints: map[string][]string{}, dns: map[string]bool{},
		announced: w.announced(),
	}
	if w.workloadEntriesOnly {
		return o
	}
	taken := map[string]map[uint32]bool{}
	for _, c := range w.sortedEntries() {
		spec := c.Spec.(*networking.ServiceEntry)
		for _, host := range eachOnce(spec.GetHosts()) {
			addresses := usableAddresses(spec)
			if len(addresses) == 0 {
				continue
			}
			key := c.Namespace + "/" + host
			for _, a := range addresses {
				o.services[key] = append(o.services[key], w.describeService(c, host, a))
			}
			if o.endpoints[key] == nil {
				o.endpoints[key], taken[key] = []string{}, map[uint32]bool{}
			}
			for _, ct := range w.contributions(c, host) {
				port := ct.endpoint.ServicePort
				if spec.GetResolution() == networking.ServiceEntry_DNS_ROUND_ROBIN && taken[key][port] {
					continue
				}
				taken[key][port] = true
				o.all = append(o.all, ct)
				o.endpoints[key] = append(o.endpoints[key], describeEndpoint(&ct.endpoint))
				o.dns[key] = o.dns[key] || isDNS(spec)
			}
		}
	}
	for key := range o.services {
		slices.Sort(o.services[key])
		slices.Sort(o.endpoints[key])
		o.endpoints[key] = slices.Compact(o.endpoints[key])
	}
	return o
}

// sortedEntries returns the ServiceEntries, the oldest first.
func (w *world) sortedEntries() []configstore.Config {
	return slices.SortedFunc(maps.Values(w.entries), func(a, b configstore.Config) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp), strings.Compare(a.Name, b.Name), strings.Compare(a.Namespace, b.Namespace))
	})
}

func usableAddresses(spec *networking.ServiceEntry) []string {
	if len(spec.GetAddresses()) == 0 {
		return []string{registry.UnspecifiedAddress}
	}
	var out []string
	for _, a := range spec.GetAddresses() {
		if ip, err := netip.ParseAddr(a); err == nil {
			out = append(out, ip.String())
		} else if p, err := netip.ParsePrefix(a); err == nil {
			if p.IsSingleIP() {
				out = append(out, p.Addr().String())
			} else {
				out = append(out, a)
			}
		}
	}
	return eachOnce(out)
}

func eachOnce(list []string) []string {
	var out []string
	for _, v := range list {
		if !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

func isDNS(spec *networking.ServiceEntry) bool {
	return spec.GetResolution() == networking.ServiceEntry_DNS || spec.GetResolution() == networking.ServiceEntry_DNS_ROUND_ROBIN
}

// contributions returns what an entry gives to a host, in order.
func (w *world) contributions(c configstore.Config, host string) []contribution {
	spec := c.Spec.(*networking.ServiceEntry)
	var out []contribution
	give := func(base registry.Endpoint, unix bool, ports map[string]uint32, rank int, name, labelName string) {
		for _, p := range spec.GetPorts() {
			e := base
			e.ServicePort, e.ServicePortName = p.GetNumber(), p.GetName()
			switch {
			case unix:
				e.EndpointPort = 0
			case ports[p.GetName()] > 0:
				e.EndpointPort = ports[p.GetName()]
			case p.GetTargetPort() > 0:
				e.EndpointPort = p.GetTargetPort()
			default:
				e.EndpointPort = p.GetNumber()
			}
			out = append(out, contribution{c, host, e, rank, name, labelName})
		}
	}
	switch {
	case spec.GetWorkloadSelector() != nil:
		for _, s := range w.candidates(c.Namespace) {
			if s.selectedBy(c) {
				give(s.base, s.unix, s.ports, s.rank, s.name, s.name)
			}
		}
	case len(spec.GetEndpoints()) > 0:
		for i, e := range spec.GetEndpoints() {
			name := c.Name + "-" + strconv.Itoa(i)
			base := w.endpoint(e, e.GetLabels(), c.Namespace, name)
			give(base, strings.HasPrefix(e.GetAddress(), "unix://"), e.GetPorts(), rankInline, name, c.Namespace+"/"+name)
		}
	case isDNS(spec):
		give(registry.Endpoint{Addresses: []string{host}, WorkloadName: c.Name, Shared: &registry.EndpointAttributes{
			ClusterID: w.cluster, TLSMode: "disabled", Namespace: c.Namespace,
		}}, false, nil, rankHost, host, "")
	}
	return out
}

// source is a workload that entries may select.
type source struct {
	base    registry.Endpoint
	ports   map[string]uint32
	unix    bool
	dnsOnly bool
	rank    int
	name    string
}

func (s source) key() registry.WorkloadKey {
	parts := strings.Split(s.name, "/")
	k := registry.WorkloadKey{Cluster: registry.ClusterID(parts[2]), Kind: registry.Pod, Namespace: parts[0], Name: parts[1]}
	if s.rank == rankWorkloadEntry {
		k.Kind = registry.WorkloadEntry
	}
	return k
}

// selectedBy reports whether an entry with a selector selects a workload of its
// namespace.
func (s source) selectedBy(c configstore.Config) bool {
	spec := c.Spec.(*networking.ServiceEntry)
	return subset(spec.GetWorkloadSelector().GetLabels(), s.base.Attributes().Labels) && (!s.dnsOnly || isDNS(spec))
}

// candidates returns the workloads of a namespace, pods first, by name.
func (w *world) candidates(namespace string) []source {
	var out []source
	for _, c := range w.workloads {
		if s, ok := w.ownSource(c); ok && c.Namespace == namespace {
			s.base.WorkloadName = cmp.Or(s.base.WorkloadName, c.Name)
			out = append(out, s)
		}
	}
	for k, wi := range w.foreign {
		if k.Namespace == namespace {
			out = append(out, foreignSource(wi))
		}
	}
	slices.SortFunc(out, func(a, b source) int { return cmp.Or(cmp.Compare(a.rank, b.rank), strings.Compare(a.name, b.name)) })
	return out
}

func (w *world) ownSource(c configstore.Config) (source, bool) {
	if slices.Contains([]string{"true", "T"}, c.Annotations["proxy.istio.io/health-checks-enabled"]) && !w.ignoreHealth {
		ok := false
		if status, is := c.Status.(*meta.IstioStatus); is {
			for _, condition := range status.GetConditions() {
				ok = ok || condition.GetType() == "Healthy" && condition.GetStatus() == "True"
			}
		}
		if !ok {
			return source{}, false
		}
	}
	spec := c.Spec.(*networking.WorkloadEntry)
	labels := map[string]string{}
	maps.Copy(labels, spec.GetLabels())
	maps.Copy(labels, c.Labels)
	_, err := netip.ParseAddr(spec.GetAddress())
	return source{
		base: w.endpoint(spec, labels, c.Namespace, workloadName(c)), ports: spec.GetPorts(),
		unix: strings.HasPrefix(spec.GetAddress(), "unix://"), dnsOnly: err != nil && spec.GetAddress() != "",
		rank: rankWorkloadEntry, name: c.Namespace + "/" + c.Name + "/" + string(w.cluster),
	}, true
}

func workloadName(c configstore.Config) string {
	if group, ok := c.Annotations["istio.io/autoRegistrationGroup"]; ok {
		return group
	}
	if name, ok := c.Labels["service.istio.io/workload-name"]; ok {
		return name
	}
	return c.Name
}

func foreignSource(wi *registry.WorkloadInstance) source {
	rank := rankPod
	if wi.Kind == registry.WorkloadEntry {
		rank = rankWorkloadEntry
	}
	base := *wi.Endpoint
	attributes := *base.Attributes()
	attributes.Namespace = cmp.Or(attributes.Namespace, wi.Namespace)
	base.WorkloadName = cmp.Or(base.WorkloadName, wi.Name)
	base.Shared = &attributes
	return source{
		base: base, ports: wi.PortMap, dnsOnly: wi.DNSServiceEntryOnly,
		rank: rank, name: wi.Namespace + "/" + wi.Name + "/" + string(wi.Cluster),
	}
}

// endpoint returns the endpoint that a WorkloadEntry describes, without a port.
func (w *world) endpoint(spec *networking.WorkloadEntry, labels map[string]string, namespace, name string) registry.Endpoint {
	network := cmp.Or(spec.GetNetwork(), labels["topology.istio.io/network"])
	if network == "" && w.askNetworks {
		network = networkByRules(spec.GetAddress(), labels)
	}
	locality := spec.GetLocality()
	label, ok := labels["topology.istio.io/locality"]
	if !ok {
		label = labels["istio-locality"]
	}
	if locality == "" {
		if locality = label; !strings.Contains(label, "/") {
			locality = strings.ReplaceAll(label, ".", "/")
		}
	}
	all := registry.Labels{"topology.istio.io/cluster": string(w.cluster)}
	parts := strings.Split(locality, "/")
	for i, part := range parts[:min(3, len(parts))] {
		if key := []string{"topology.kubernetes.io/region", "topology.kubernetes.io/zone", "topology.istio.io/subzone"}[i]; part != "" {
			all[key] = part
		}
	}
	if network != "" {
		all["topology.istio.io/network"] = network
	}
	for k, v := range labels {
		if _, topology := all[k]; !topology || k == "topology.istio.io/network" {
			all[k] = v
		}
	}
	a := &registry.EndpointAttributes{
		Labels: all, Network: network, Locality: locality, ClusterID: w.cluster,
		LbWeight: spec.GetWeight(), TLSMode: "disabled", Namespace: namespace,
	}
	if account := spec.GetServiceAccount(); account != "" {
		a.ServiceAccount = "spiffe://" + w.trustDomain + "/ns/" + namespace + "/sa/" + account
		a.TLSMode = "istio"
	}
	if mode, ok := labels["security.istio.io/tlsMode"]; ok {
		a.TLSMode = mode
	}
	return registry.Endpoint{
		Addresses: []string{strings.TrimPrefix(spec.GetAddress(), "unix://")}, WorkloadName: name, Shared: a,
	}
}

func subset(selector, labels map[string]string) bool {
	for k, v := range selector {
		if labels[k] != v {
			return false
		}
	}
	return true
}

// announced returns the WorkloadEntries with an IP address, or with none at all.
func (w *world) announced() map[string]string {
	out := map[string]string{}
	for _, c := range w.workloads {
		if s, ok := w.ownSource(c); ok && !s.dnsOnly {
			out[c.Namespace+"/"+c.Name] = describeWorkload(&s.base, s.ports)
		}
	}
	return out
}

// instances returns what a proxy at an address is, sorted.
func (o *outcome) instances(ip, namespace string) []string {
	var out []string
	for _, c := range o.known(ip, namespace) {
		for _, a := range usableAddresses(c.entry.Spec.(*networking.ServiceEntry)) {
			out = append(out, describeInstance(c.entry.Namespace+"/"+c.entry.Name+"/"+c.host+"/"+a, &c.endpoint))
		}
	}
	slices.Sort(out)
	return out
}

// labels returns the labels of the workload at an address, nil if there is none.
func (o *outcome) labels(ip, namespace string) registry.Labels {
	var best *contribution
	for _, c := range o.known(ip, namespace) {
		if c.rank == rankHost {
			continue
		}
		if best == nil || cmp.Or(cmp.Compare(c.rank, best.rank), strings.Compare(c.labelName, best.labelName)) < 0 {
			best = &c
		}
	}
	if best == nil {
		return nil
	}
	return best.endpoint.Attributes().Labels
}

// known returns the contributions at an address. Of those that one entry has from
// sources that cannot be distinguished only the last source counts, as recorded from
// Istio (pods/two-pods-same-address-basic).
func (o *outcome) known(ip, namespace string) []contribution {
	type likeness struct{ entry, host, workload, address, namespace string }
	of := func(c contribution) likeness {
		host := ""
		if c.rank == rankHost {
			host = c.host
		}
		return likeness{
			c.entry.Namespace + "/" + c.entry.Name, host, c.endpoint.WorkloadName, c.endpoint.Address(), c.endpoint.Attributes().Namespace,
		}
	}
	id := func(c contribution) string { return strconv.Itoa(c.rank) + "/" + c.name }
	at, last := o.at(ip, namespace), map[likeness]string{}
	for _, c := range at {
		last[of(c)] = max(last[of(c)], id(c))
	}
	return slices.DeleteFunc(at, func(c contribution) bool { return last[of(c)] != id(c) })
}

func (o *outcome) at(ip, namespace string) []contribution {
	var out []contribution
	for _, c := range o.all {
		if slices.Contains(c.endpoint.Addresses, ip) && (namespace == "" || c.entry.Namespace == namespace) {
			out = append(out, c)
		}
	}
	return out
}
