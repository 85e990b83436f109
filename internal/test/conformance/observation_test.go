// SPDX-License-Identifier: Apache-2.0

package conformance

// observation is the observed state after one step: README.md, section 3. Recorded and replayed
// steps have the same form; its field names are those of the files.
type observation struct {
	Index                int                    `json:"index"`
	Summary              string                 `json:"summary"`
	Results              []result               `json:"results"`
	Calls                []call                 `json:"calls"`
	WorkloadHandlerCalls []workloadHandlerCall  `json:"workloadHandlerCalls"`
	ServiceHandlerCalls  []serviceHandlerCall   `json:"serviceHandlerCalls"`
	EventHandlerCalls    []eventHandlerCall     `json:"eventHandlerCalls"`
	Services             []service              `json:"services"`
	GetService           map[string]answers     `json:"getService"`
	EndpointIndex        []indexEntry           `json:"endpointIndex"`
	Proxies              []proxyState           `json:"proxies"`
	RegistryOrder        []string               `json:"registryOrder"`
	NetworkGateways      []gateway              `json:"networkGateways"`
	GatewayHandlerCalls  int                    `json:"gatewayHandlerCalls"`
	Nondeterministic     []string               `json:"nondeterministic"`
	Alternatives         map[string]alternative `json:"alternatives"`
}

type result struct {
	Op              string   `json:"op"`
	Object          string   `json:"object"`
	Outcome         string   `json:"outcome"`
	Messages        []string `json:"messages"`
	ResourceVersion string   `json:"resourceVersion"`
	Item            *object  `json:"item"`
	Items           []object `json:"items"`
}

// The values of result.Outcome.
const (
	outcomeOK          = "ok"
	outcomeExists      = "exists"
	outcomeConflict    = "conflict"
	outcomeNotFound    = "notfound"
	outcomeInvalid     = "invalid"
	outcomeUnknownType = "unknownType"
)

// object is a stored config as the files show it. CreationTimestamp is RFC 3339,
// or timeNow or timeZero.
type object struct {
	Kind              string            `json:"kind"`
	Namespace         string            `json:"namespace"`
	Name              string            `json:"name"`
	ResourceVersion   string            `json:"resourceVersion"`
	CreationTimestamp string            `json:"creationTimestamp"`
	Labels            map[string]string `json:"labels"`
	Annotations       map[string]string `json:"annotations"`
	Spec              map[string]any    `json:"spec"`
	Status            map[string]any    `json:"status"`
}

// The times that are not written as such.
const (
	timeNow  = "now"
	timeZero = "zero"
)

// call is a call to the updater.
type call struct {
	Doc            int        `json:"doc"`
	Source         string     `json:"source"`
	Call           string     `json:"call"`
	Sometimes      bool       `json:"sometimes"`
	Shard          string     `json:"shard"`
	Hostname       string     `json:"hostname"`
	Namespace      string     `json:"namespace"`
	Event          string     `json:"event"`
	Endpoints      []endpoint `json:"endpoints"`
	PushType       string     `json:"pushType"`
	Forced         bool       `json:"forced"`
	ConfigsUpdated []string   `json:"configsUpdated"`
	Reasons        []string   `json:"reasons"`
	Cluster        string     `json:"cluster"`
	IP             string     `json:"ip"`
}

// The values of call.Call.
const (
	callSvcUpdate      = "SvcUpdate"
	callEDSUpdate      = "EDSUpdate"
	callEDSCacheUpdate = "EDSCacheUpdate"
	callConfigUpdate   = "ConfigUpdate"
	callProxyUpdate    = "ProxyUpdate"
	callRemoveShard    = "RemoveShard"
	callPruneShard     = "PruneShard"
)

// sourceWorkloads is the value of call.Source for calls caused by a WorkloadEntry itself.
const sourceWorkloads = "workloads"

type endpoint struct {
	Addresses              []string          `json:"addresses"`
	EndpointPort           uint32            `json:"endpointPort"`
	ServicePortName        string            `json:"servicePortName"`
	LegacyClusterPortKey   uint32            `json:"legacyClusterPortKey"`
	Labels                 map[string]string `json:"labels"`
	ServiceAccount         string            `json:"serviceAccount"`
	Network                string            `json:"network"`
	Locality               string            `json:"locality"`
	ClusterID              string            `json:"clusterID"`
	LbWeight               uint32            `json:"lbWeight"`
	HealthStatus           string            `json:"healthStatus"`
	SendUnhealthyEndpoints bool              `json:"sendUnhealthyEndpoints"`
	TLSMode                string            `json:"tlsMode"`
	Namespace              string            `json:"namespace"`
	WorkloadName           string            `json:"workloadName"`
	HostName               string            `json:"hostName"`
	SubDomain              string            `json:"subDomain"`
	NodeName               string            `json:"nodeName"`
}

type workloadHandlerCall struct {
	Doc                 int               `json:"doc"`
	Handler             string            `json:"handler"`
	Event               string            `json:"event"`
	Namespace           string            `json:"namespace"`
	Name                string            `json:"name"`
	Kind                string            `json:"kind"`
	PortMap             map[string]uint32 `json:"portMap"`
	DNSServiceEntryOnly bool              `json:"dnsServiceEntryOnly"`
	Endpoint            endpoint          `json:"endpoint"`
}

type serviceHandlerCall struct {
	Doc      int    `json:"doc"`
	Handler  string `json:"handler"`
	Event    string `json:"event"`
	Hostname string `json:"hostname"`
	Previous string `json:"previous"`
}

// eventHandlerCall: a part that was passed empty is nil.
type eventHandlerCall struct {
	Kind  string  `json:"kind"`
	Event string  `json:"event"`
	Old   *object `json:"old"`
	New   *object `json:"new"`
}

// The values of the event fields.
const (
	eventAdd    = "add"
	eventUpdate = "update"
	eventDelete = "delete"
)

type service struct {
	Hostname            string              `json:"hostname"`
	Namespace           string              `json:"namespace"`
	ObjectName          string              `json:"objectName"`
	DefaultAddress      string              `json:"defaultAddress"`
	Name                string              `json:"name"`
	Registry            string              `json:"registry"`
	AutoAllocatedIPv4   string              `json:"autoAllocatedIPv4"`
	AutoAllocatedIPv6   string              `json:"autoAllocatedIPv6"`
	Resolution          string              `json:"resolution"`
	MeshExternal        bool                `json:"meshExternal"`
	Ports               []port              `json:"ports"`
	ExportTo            []string            `json:"exportTo"`
	Visibility          string              `json:"visibility"`
	Labels              map[string]string   `json:"labels"`
	LabelSelectors      map[string]string   `json:"labelSelectors"`
	ServiceAccounts     []string            `json:"serviceAccounts"`
	CreationTime        string              `json:"creationTime"`
	TrafficDistribution string              `json:"trafficDistribution"`
	DNSConnectStrategy  string              `json:"dnsConnectStrategy"`
	ClusterVIPs         map[string][]string `json:"clusterVIPs"`
}

// The names of resolutions whose endpoints are part of the cluster.
const (
	resolutionDNS           = "DNS"
	resolutionDNSRoundRobin = "DNSRoundRobin"
)

// The names of providers.
const (
	providerKubernetes = "Kubernetes"
	providerExternal   = "External"
)

// key is namespace/hostname, the key of the endpoint index.
func (s service) key() key { return key{s.Hostname, s.Namespace} }

// resource is namespace/objectName/hostname/defaultAddress.
func (s service) resource() string {
	return s.Namespace + "/" + s.ObjectName + "/" + s.Hostname + "/" + s.DefaultAddress
}

type port struct {
	Name                  string `json:"name"`
	Port                  uint32 `json:"port"`
	Protocol              string `json:"protocol"`
	PassthroughTargetPort uint32 `json:"passthroughTargetPort"`
}

// key names a service in the endpoint index.
type key struct{ Hostname, Namespace string }

func (k key) String() string { return k.Namespace + "/" + k.Hostname }

type indexEntry struct {
	Hostname        string   `json:"hostname"`
	Namespace       string   `json:"namespace"`
	ServiceAccounts []string `json:"serviceAccounts"`
	Shards          []shard  `json:"shards"`
}

func (e indexEntry) key() key { return key{e.Hostname, e.Namespace} }

type shard struct {
	Shard     string     `json:"shard"`
	Endpoints []endpoint `json:"endpoints"`
}

// proxyState is the view of a proxy of the scenario. WorkloadLabels is nil without a result.
type proxyState struct {
	IPs                 []string            `json:"ips"`
	Namespace           string              `json:"namespace"`
	Cluster             string              `json:"cluster"`
	DNSCapture          bool                `json:"dnsCapture"`
	DNSAutoAllocate     bool                `json:"dnsAutoAllocate"`
	Targets             []target            `json:"targets"`
	WorkloadLabels      *map[string]string  `json:"workloadLabels"`
	WorkloadLabelsOneOf []map[string]string `json:"workloadLabelsOneOf"`
	ServiceAddresses    map[string][]string `json:"serviceAddresses"`
}

type target struct {
	Hostname       string `json:"hostname"`
	Namespace      string `json:"namespace"`
	ObjectName     string `json:"objectName"`
	DefaultAddress string `json:"defaultAddress"`
	PortName       string `json:"portName"`
	Port           uint32 `json:"port"`
	Protocol       string `json:"protocol"`
	TargetPort     uint32 `json:"targetPort"`
}

type gateway struct {
	Network        string `json:"network"`
	Cluster        string `json:"cluster"`
	Addr           string `json:"addr"`
	Port           uint32 `json:"port"`
	HBONEPort      uint32 `json:"hbonePort"`
	ServiceAccount string `json:"serviceAccount"`
}
