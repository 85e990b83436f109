// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"encoding/json"
	"net/netip"
	"slices"
	"sort"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/kube"
)

// world is everything that a registry's state is a function of. Its methods compute
// that state from scratch, in the plainest way, and share no code with the registry.
type world struct {
	cluster        string
	suffix, system string
	mesh           kube.Mesh
	dualStack      bool
	services       map[string]*corev1.Service
	slices         map[string]*discoveryv1.EndpointSlice
	pods           map[string]*corev1.Pod
	nodes          map[string]*corev1.Node
	namespaces     map[string]*corev1.Namespace
	foreign        map[registry.WorkloadKey]*registry.WorkloadInstance
	allServices    map[string]*corev1.Service
	allSlices      map[string]*discoveryv1.EndpointSlice
	allPods        map[string]*corev1.Pod
}

func newWorld(options kube.Options, mesh kube.Mesh) *world {
	w := &world{
		cluster: string(options.ClusterID), suffix: options.DomainSuffix, system: options.SystemNamespace, mesh: mesh,
		dualStack: options.DualStack, services: map[string]*corev1.Service{}, slices: map[string]*discoveryv1.EndpointSlice{},
		pods: map[string]*corev1.Pod{}, nodes: map[string]*corev1.Node{}, namespaces: map[string]*corev1.Namespace{},
		foreign: map[registry.WorkloadKey]*registry.WorkloadInstance{},
	}
	if w.suffix == "" {
		w.suffix = "cluster.local"
	}
	if w.system == "" {
		w.system = "istio-system"
	}
	if w.mesh.TrustDomain == "" {
		w.mesh.TrustDomain = "cluster.local"
	}
	return w
}

// put adds an object that a watch shows.
func (w *world) put(object any) {
	switch o := object.(type) {
	case *corev1.Service:
		w.services[o.Namespace+"/"+o.Name] = o
	case *discoveryv1.EndpointSlice:
		w.slices[o.Namespace+"/"+o.Name] = o
	case *corev1.Pod:
		if o.Status.Phase != corev1.PodFailed {
			w.pods[o.Namespace+"/"+o.Name] = o
		}
	case *corev1.Node:
		w.nodes[o.Name] = o
	case *corev1.Namespace:
		w.namespaces[o.Name] = o
	}
}

// narrow leaves only what is in the namespaces that are watched.
func (w *world) narrow() {
	w.allServices, w.allSlices, w.allPods = w.services, w.slices, w.pods
	w.services, w.slices, w.pods = map[string]*corev1.Service{}, map[string]*discoveryv1.EndpointSlice{}, map[string]*corev1.Pod{}
	for k, o := range w.allServices {
		if w.watched(o.Namespace) {
			w.services[k] = o
		}
	}
	for k, o := range w.allSlices {
		if w.watched(o.Namespace) {
			w.slices[k] = o
		}
	}
	for k, o := range w.allPods {
		if w.watched(o.Namespace) {
			w.pods[k] = o
		}
	}
}

func (w *world) watched(namespace string) bool {
	if len(w.mesh.DiscoverySelectors) == 0 {
		return true
	}
	n := w.namespaces[namespace]
	if n == nil {
		return false
	}
	for i := range w.mesh.DiscoverySelectors {
		s, err := metav1.LabelSelectorAsSelector(&w.mesh.DiscoverySelectors[i])
		if err == nil && s.Matches(labels.Set(n.Labels)) {
			return true
		}
	}
	return false
}

func (w *world) hostname(namespace, name string) string {
	return name + "." + namespace + ".svc." + w.suffix
}

func (w *world) shard() string { return "Kubernetes/" + w.cluster }

// list returns the annotation's parts.
func split(annotation string) []string {
	if annotation == "" {
		return nil
	}
	return strings.Split(annotation, ",")
}

func (w *world) accounts(s *corev1.Service) []string {
	out := split(s.Annotations["alpha.istio.io/canonical-serviceaccounts"])
	for _, a := range split(s.Annotations["alpha.istio.io/kubernetes-serviceaccounts"]) {
		out = append(out, "spiffe://"+w.mesh.TrustDomain+"/ns/"+s.Namespace+"/sa/"+a)
	}
	return out
}

func exportTo(s *corev1.Service) []string {
	found := set{}
	for _, v := range split(s.Annotations["networking.istio.io/exportTo"]) {
		if v = strings.TrimSpace(v); v != "" {
			found[v] = true
		}
	}
	return found.sorted()
}

func isHidden(s *corev1.Service) bool { return slices.Contains(exportTo(s), "~") }

func nearness(v string) string {
	switch strings.ToLower(v) {
	case "preferclose", "prefersamezone":
		return "PreferSameZone"
	case "prefersamenode":
		return "PreferSameNode"
	}
	return ""
}

func (w *world) distribution(s *corev1.Service) string {
	const annotation = "networking.istio.io/traffic-distribution"
	if s.Spec.TrafficDistribution != nil && nearness(*s.Spec.TrafficDistribution) != "" {
		return nearness(*s.Spec.TrafficDistribution)
	}
	if v, ok := s.Annotations[annotation]; ok {
		return nearness(v)
	}
	if n := w.namespaces[s.Namespace]; n != nil {
		return nearness(n.Annotations[annotation])
	}
	return ""
}

func vips(s *corev1.Service) []string {
	switch {
	case s.Spec.ClusterIP == "" || s.Spec.ClusterIP == "None":
		return []string{"0.0.0.0"}
	case len(s.Spec.ClusterIPs) > 1:
		return s.Spec.ClusterIPs
	default:
		return []string{s.Spec.ClusterIP}
	}
}

func isNodePort(s *corev1.Service) bool {
	_, ok := s.Annotations["traffic.istio.io/nodeSelector"]
	return ok && s.Spec.Type == corev1.ServiceTypeNodePort
}

func (w *world) external(s *corev1.Service) []string {
	var out []string
	if isNodePort(s) {
		found := set{}
		for _, n := range w.nodes {
			if a := externalAddress(n); a != "" && selectsNode(s, n) {
				found[a] = true
			}
		}
		out = found.sorted()
	}
	if s.Spec.Type == corev1.ServiceTypeLoadBalancer {
		for _, in := range s.Status.LoadBalancer.Ingress {
			if in.IP != "" {
				out = append(out, in.IP)
			} else if in.Hostname != "" {
				out = append(out, in.Hostname)
			}
		}
	}
	return append(out, s.Spec.ExternalIPs...)
}

func externalAddress(n *corev1.Node) string {
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeExternalIP && a.Address != "" {
			return a.Address
		}
	}
	return ""
}

func selectsNode(s *corev1.Service, n *corev1.Node) bool {
	text := s.Annotations["traffic.istio.io/nodeSelector"]
	if text == "" {
		return true
	}
	var selector map[string]string
	return json.Unmarshal([]byte(text), &selector) == nil && labels.SelectorFromSet(selector).Matches(labels.Set(n.Labels))
}

func protocol(p corev1.ServicePort) string {
	if p.Protocol == corev1.ProtocolUDP {
		return "UDP"
	}
	name := p.Name
	if p.AppProtocol != nil {
		name = *p.AppProtocol
	}
	if known := map[string]string{"kubernetes.io/h2c": "HTTP2", "kubernetes.io/ws": "HTTP", "kubernetes.io/wss": "HTTPS"}[name]; known != "" && p.AppProtocol != nil {
		return known
	}
	if strings.HasPrefix(strings.ToLower(name), "grpc-web") {
		return "GRPC-Web"
	}
	out := string(registry.ParseProtocol(strings.Split(name, "-")[0]))
	if out == "UnsupportedProtocol" && slices.Contains([]int32{25, 53, 3306, 27017}, p.Port) {
		return "TCP"
	}
	return out
}

func resolution(s *corev1.Service) string {
	switch {
	case s.Spec.Type == corev1.ServiceTypeExternalName && s.Spec.ExternalName != "":
		return "Alias"
	case s.Spec.ClusterIP == "None":
		return "Passthrough"
	default:
		return "ClientSide"
	}
}

// service returns a service as recordings have them.
func (w *world) service(s *corev1.Service) record {
	ports := []any{}
	nodePorts := map[string]int32{}
	for _, p := range s.Spec.Ports {
		ports = append(ports, map[string]any{"name": p.Name, "port": p.Port, "protocol": protocol(p)})
		nodePorts[strconv.Itoa(int(p.Port))] = p.NodePort
	}
	out := map[string]any{
		"hostname": w.hostname(s.Namespace, s.Name), "namespace": s.Namespace, "name": s.Name, "registry": "Kubernetes",
		"defaultAddress": vips(s)[0], "clusterVIPs": map[string]any{w.cluster: vips(s)}, "resolution": resolution(s),
		"meshExternal": resolution(s) == "Alias", "externalName": s.Spec.ExternalName, "type": s.Spec.Type, "ports": ports,
		"exportTo": exportTo(s), "labels": s.Labels, "labelSelectors": s.Spec.Selector, "serviceAccounts": w.accounts(s),
		"creationTime":        s.CreationTimestamp.UTC().Format("2006-01-02T15:04:05Z07:00"),
		"trafficDistribution": w.distribution(s), "publishNotReadyAddresses": s.Spec.PublishNotReadyAddresses,
		"nodeLocal": s.Spec.InternalTrafficPolicy != nil && *s.Spec.InternalTrafficPolicy == corev1.ServiceInternalTrafficPolicyLocal,
	}
	if e := w.external(s); len(e) > 0 {
		out["clusterExternalAddresses"] = map[string]any{w.cluster: e}
	}
	if isNodePort(s) {
		out["clusterExternalPorts"] = map[string]any{w.cluster: nodePorts}
	}
	return plain(out).(map[string]any)
}

// clusterNetwork is the network of the cluster, by the system namespace or the
// mesh.
func (w *world) clusterNetwork() string {
	if n := w.namespaces[w.system]; n != nil && n.Labels["topology.istio.io/network"] != "" {
		return n.Labels["topology.istio.io/network"]
	}
	best := ""
	for _, n := range w.mesh.Networks {
		if slices.Contains(n.Registries, registry.ClusterID(w.cluster)) && (best == "" || n.Name < best) {
			best = n.Name
		}
	}
	return best
}

func (w *world) rangeNetwork(address string) string {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return ""
	}
	best, bits := "", -1
	for _, n := range w.mesh.Networks {
		for _, p := range n.Ranges {
			if p.Contains(a) && (p.Bits() > bits || p.Bits() == bits && n.Name < best) {
				best, bits = n.Name, p.Bits()
			}
		}
	}
	return best
}

func (w *world) network(own map[string]string, addresses ...string) string {
	if n := own["topology.istio.io/network"]; n != "" {
		return n
	}
	if n := w.clusterNetwork(); n != "" {
		return n
	}
	for _, a := range addresses {
		if n := w.rangeNetwork(a); n != "" {
			return n
		}
	}
	return ""
}

func (w *world) locality(p *corev1.Pod) string {
	for _, key := range []string{"topology.istio.io/locality", "istio-locality"} {
		if v := p.Labels[key]; v != "" {
			if !strings.Contains(v, "/") {
				v = strings.ReplaceAll(v, ".", "/")
			}
			return v
		}
	}
	n := w.nodes[p.Spec.NodeName]
	if n == nil {
		return ""
	}
	parts := []string{
		firstLabel(n.Labels, "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"),
		firstLabel(n.Labels, "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"),
		n.Labels["topology.istio.io/subzone"],
	}
	if out := strings.Join(parts, "/"); out != "//" {
		return out
	}
	return ""
}

func firstLabel(all map[string]string, keys ...string) string {
	for _, k := range keys {
		if all[k] != "" {
			return all[k]
		}
	}
	return ""
}

func (w *world) workloadLabels(own map[string]string, locality, node, network string) map[string]string {
	out := map[string]string{"topology.istio.io/cluster": w.cluster, "topology.istio.io/network": network, "kubernetes.io/hostname": node}
	parts := append(strings.Split(locality, "/"), "", "", "")
	out["topology.kubernetes.io/region"], out["topology.kubernetes.io/zone"], out["topology.istio.io/subzone"] = parts[0], parts[1], parts[2]
	for k, v := range own {
		if out[k] == "" {
			out[k] = v
		}
	}
	return out
}

func podAddresses(p *corev1.Pod) []string {
	if p.Status.PodIP == "" {
		return nil
	}
	out := []string{p.Status.PodIP}
	for _, ip := range p.Status.PodIPs {
		if !slices.Contains(out, ip.IP) {
			out = append(out, ip.IP)
		}
	}
	return out
}

func isUsable(p *corev1.Pod) bool {
	isReady := false
	for _, c := range p.Status.Conditions {
		isReady = isReady || c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	}
	running := p.Status.Phase == corev1.PodRunning || p.Status.Phase == corev1.PodPending
	return isReady && running && p.DeletionTimestamp == nil && p.Status.PodIP != ""
}

// attributes returns what a record has of a pod; nil for none.
func (w *world) attributes(p *corev1.Pod, address string) map[string]any {
	if p == nil {
		network := w.network(nil, address)
		return map[string]any{
			"labels": w.workloadLabels(nil, "", "", network), "network": network, "clusterID": w.cluster, "tlsMode": "disabled",
			"sendUnhealthyEndpoints": true,
		}
	}
	network, locality := w.network(p.Labels, p.Status.PodIP, address), w.locality(p)
	hostname := ""
	if p.Spec.Subdomain != "" {
		if hostname = p.Spec.Hostname; hostname == "" {
			hostname = p.Name
		}
	}
	tls := p.Labels["security.istio.io/tlsMode"]
	if tls == "" {
		tls = "disabled"
	}
	return map[string]any{
		"labels":         w.workloadLabels(p.Labels, locality, p.Spec.NodeName, network),
		"serviceAccount": "spiffe://" + w.mesh.TrustDomain + "/ns/" + p.Namespace + "/sa/" + p.Spec.ServiceAccountName,
		"network":        network, "locality": locality, "clusterID": w.cluster, "tlsMode": tls, "namespace": p.Namespace,
		"workloadName": workload(p), "nodeName": p.Spec.NodeName, "hostName": hostname, "subDomain": p.Spec.Subdomain,
		"sendUnhealthyEndpoints": true,
	}
}

// workload returns the name of what the corpus and the histories have as owners.
func workload(p *corev1.Pod) string {
	if p.GenerateName != "" {
		for _, o := range p.OwnerReferences {
			if o.Controller != nil && *o.Controller {
				if hash := p.Labels["pod-template-hash"]; o.Kind == "ReplicaSet" && hash != "" {
					return strings.TrimSuffix(o.Name, "-"+hash)
				}
				return o.Name
			}
		}
	}
	return p.Name
}

// modelEndpoint is an endpoint with where it comes from.
type modelEndpoint struct {
	record record
	// slice is the key of the slice, "" for that of a workload.
	slice string
	// pod is the key of the target; "" if the endpoint names none.
	pod string
	// key is what only one endpoint of a service can have.
	key string
	// claims is how many endpoints of slices claim the key.
	claims int
	// shaky: the recorded health depends on more than the conditions.
	shaky bool
	// second: the endpoint names no pod, and has not the first address of the one that
	// it is of.
	second bool
}

func endpointKey(r record) string {
	a := r.strings("addresses")
	if len(a) == 0 {
		return "/" + r.str("servicePortName")
	}
	return a[0] + "/" + r.str("servicePortName")
}

// endpoints returns the endpoints of a service.
func (w *world) endpoints(s *corev1.Service) []modelEndpoint {
	if isHidden(s) {
		return nil
	}
	winners := map[string]modelEndpoint{}
	names := []string{}
	for k := range w.slices {
		names = append(names, k)
	}
	sort.Strings(names)
	claims := map[string]int{}
	for _, k := range names {
		for _, e := range w.sliceEndpoints(w.slices[k], s) {
			claims[e.key]++
			old, taken := winners[e.key]
			if !taken || old.record.str("healthStatus") != "Healthy" && e.record.str("healthStatus") == "Healthy" {
				winners[e.key] = e
			}
		}
	}
	var out []modelEndpoint
	for k, e := range winners {
		e.claims = claims[k]
		out = append(out, e)
	}
	return append(out, w.foreignEndpoints(s)...)
}

func (w *world) sliceEndpoints(slice *discoveryv1.EndpointSlice, s *corev1.Service) []modelEndpoint {
	_, imported := slice.Labels["multicluster.kubernetes.io/service-name"]
	if slice.Namespace != s.Namespace || slice.Labels["kubernetes.io/service-name"] != s.Name || imported ||
		slice.AddressType == discoveryv1.AddressTypeFQDN {
		return nil
	}
	var out []modelEndpoint
	for _, e := range slice.Endpoints {
		for _, a := range e.Addresses {
			pod, target, ok := w.podOf(slice.Namespace, e, a)
			if !ok {
				continue
			}
			for _, p := range slice.Ports {
				r := w.sliceEndpoint(s, e, p, pod, a)
				out = append(out, modelEndpoint{
					record: r, slice: slice.Namespace + "/" + slice.Name, pod: target, key: endpointKey(r),
					shaky:  r.str("healthStatus") != "Healthy",
					second: target == "" && pod != nil && pod.Status.PodIP != a,
				})
			}
		}
	}
	return out
}

// podOf returns the pod of an endpoint, and the key of its target; false if the
// target does not exist.
func (w *world) podOf(namespace string, e discoveryv1.Endpoint, address string) (*corev1.Pod, string, bool) {
	if e.TargetRef != nil && e.TargetRef.Kind == "Pod" {
		ns := e.TargetRef.Namespace
		if ns == "" {
			ns = namespace
		}
		k := ns + "/" + e.TargetRef.Name
		return w.pods[k], k, w.pods[k] != nil
	}
	var best *corev1.Pod
	for _, p := range w.pods {
		if p.Namespace == namespace && isUsable(p) && slices.Contains(podAddresses(p), address) && (best == nil || preferred(p, best)) {
			best = p
		}
	}
	return best, "", true
}

func preferred(p, q *corev1.Pod) bool {
	switch {
	case p.Spec.HostNetwork != q.Spec.HostNetwork:
		return q.Spec.HostNetwork
	case !p.CreationTimestamp.Equal(&q.CreationTimestamp):
		return p.CreationTimestamp.Before(&q.CreationTimestamp)
	default:
		return p.Name < q.Name
	}
}

func isTrue(b *bool, otherwise bool) bool {
	if b == nil {
		return otherwise
	}
	return *b
}

func health(s *corev1.Service, e discoveryv1.Endpoint) string {
	isReady := isTrue(e.Conditions.Ready, true)
	going := isTrue(e.Conditions.Terminating, false)
	sticky := s.Labels["istio.io/persistent-session"] != "" || s.Labels["istio.io/persistent-session-header"] != ""
	switch {
	case isReady:
		return "Healthy"
	case going && sticky && isTrue(e.Conditions.Serving, isReady):
		return "Draining"
	case going:
		return "Terminating"
	default:
		return "UnHealthy"
	}
}

func (w *world) sliceEndpoint(s *corev1.Service, e discoveryv1.Endpoint, p discoveryv1.EndpointPort, pod *corev1.Pod, address string) record {
	out := w.attributes(pod, address)
	addresses := []string{address}
	if pod != nil && w.dualStack && len(podAddresses(pod)) > 1 && len(vips(s)) > 1 {
		addresses = podAddresses(pod)
	}
	out["addresses"], out["healthStatus"] = addresses, health(s, e)
	if p.Name != nil {
		out["servicePortName"] = *p.Name
	}
	if p.Port != nil {
		out["endpointPort"] = *p.Port
	}
	return plain(out).(map[string]any)
}

func (w *world) foreignEndpoints(s *corev1.Service) []modelEndpoint {
	if resolution(s) != "ClientSide" || len(s.Spec.Selector) == 0 {
		return nil
	}
	var out []modelEndpoint
	for _, wi := range w.foreign {
		own := wi.Endpoint.Attributes().Labels
		if wi.Namespace != s.Namespace || len(own) == 0 || !labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(own)) {
			continue
		}
		for _, p := range s.Spec.Ports {
			number, ok := foreignPort(p, wi)
			if !ok {
				continue
			}
			ep := *wi.Endpoint
			ep.EndpointPort, ep.ServicePortName = number, p.Name
			r := newEndpointView(&ep)
			out = append(out, modelEndpoint{record: r, key: endpointKey(r) + " of " + wi.Name})
		}
	}
	return out
}

func foreignPort(p corev1.ServicePort, wi *registry.WorkloadInstance) (uint32, bool) {
	switch {
	case p.TargetPort.Type == intstr.String:
		n, ok := wi.PortMap[p.TargetPort.StrVal]
		return n, ok && n != 0
	case p.TargetPort.IntVal == 0:
		return uint32(p.Port), true
	case p.Name != "" && wi.PortMap[p.Name] != 0:
		return wi.PortMap[p.Name], true
	default:
		return uint32(p.TargetPort.IntVal), true
	}
}

// gateways returns the network gateways.
func (w *world) gateways() []record {
	found := map[string]record{}
	for _, s := range w.services {
		for _, g := range w.gatewayPorts(s) {
			for _, a := range w.external(s) {
				g := registry.NetworkGateway{
					Network: g.Network, Cluster: registry.ClusterID(w.cluster), Addr: a,
					Port: nodePortOf(s, g.Port), HBONEPort: nodePortOf(s, g.HBONEPort),
				}
				r := viewGateway(g)
				found[r.text()] = r
			}
		}
	}
	var out []record
	for _, r := range found {
		out = append(out, r)
	}
	return out
}

func nodePortOf(s *corev1.Service, port uint32) uint32 {
	for _, p := range s.Spec.Ports {
		if isNodePort(s) && uint32(p.Port) == port {
			return uint32(p.NodePort)
		}
	}
	return port
}

func (w *world) gatewayPorts(s *corev1.Service) []registry.NetworkGateway {
	if network := s.Labels["topology.istio.io/network"]; network != "" {
		g := registry.NetworkGateway{Network: network}
		port := uint64(15443)
		if n, err := strconv.ParseUint(s.Labels["networking.istio.io/gatewayPort"], 10, 16); err == nil {
			port = n
		}
		for _, p := range s.Spec.Ports {
			if uint64(p.Port) == port {
				g.Port = uint32(port)
			}
			if p.Port == 15008 {
				g.HBONEPort = 15008
			}
		}
		if g.Port == 0 && g.HBONEPort == 0 {
			return nil
		}
		return []registry.NetworkGateway{g}
	}
	var out []registry.NetworkGateway
	for _, n := range w.mesh.Networks {
		if !slices.Contains(n.Registries, registry.ClusterID(w.cluster)) {
			continue
		}
		for _, g := range n.Gateways {
			if string(g.Hostname) == w.hostname(s.Namespace, s.Name) {
				out = append(out, registry.NetworkGateway{Network: n.Name, Port: g.Port})
			}
		}
	}
	return out
}

// workloads returns what workload handlers know of the pods, by namespace/name.
func (w *world) workloads() map[string]record {
	out := map[string]record{}
	for k, p := range w.pods {
		if !isUsable(p) {
			continue
		}
		ep := w.attributes(p, "")
		addresses := podAddresses(p)
		if !w.dualStack {
			addresses = addresses[:1]
		}
		ep["addresses"], ep["healthStatus"] = addresses, "Healthy"
		ports := map[string]int32{}
		add := func(c corev1.Container) {
			for _, port := range c.Ports {
				if _, ok := ports[port.Name]; !ok && port.Name != "" && (port.Protocol == "TCP" || port.Protocol == "") {
					ports[port.Name] = port.ContainerPort
				}
			}
		}
		for _, c := range p.Spec.Containers {
			add(c)
		}
		for _, c := range p.Spec.InitContainers {
			if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
				add(c)
			}
		}
		out[k] = plain(map[string]any{"portMap": ports, "endpoint": ep}).(map[string]any)
	}
	return out
}
