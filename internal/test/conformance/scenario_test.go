// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"github.com/pilotkit/pilotkit/internal/test/corpus"
)

// ownDirectory holds the corpus of this module.
const ownDirectory = "../../../testdata/conformance"

// goldenSuffix is the suffix of the recording of a scenario.
const goldenSuffix = ".golden.json"

// scenario is the input of one case: README.md, sections 1 and 2.
type scenario struct {
	Name        string         `yaml:"name"`
	Description string         `yaml:"description"`
	Options     options        `yaml:"options"`
	Proxies     []proxy        `yaml:"proxies"`
	Registries  []registrySpec `yaml:"registries"`
	Initial     string         `yaml:"initial"`
	Steps       []step         `yaml:"steps"`
}

type options struct {
	ClusterID                  string        `yaml:"clusterID"`
	Features                   features      `yaml:"features"`
	NetworkRules               []networkRule `yaml:"networkRules"`
	MeshConfig                 string        `yaml:"meshConfig"`
	Namespaces                 []namespace   `yaml:"namespaces"`
	WorkloadEntryOnly          bool          `yaml:"workloadEntryOnly"`
	StoreOnly                  bool          `yaml:"storeOnly"`
	SkipValidation             bool          `yaml:"skipValidation"`
	EventHandlers              []string      `yaml:"eventHandlers"`
	RecordServiceAddresses     bool          `yaml:"recordServiceAddresses"`
	ServiceHandlersForClusters []string      `yaml:"serviceHandlersForClusters"`
}

type features struct {
	IPAutoallocate                  *bool `yaml:"ipAutoallocate"`
	WorkloadEntryHealthChecks       *bool `yaml:"workloadEntryHealthChecks"`
	CanonicalServiceForMeshExternal *bool `yaml:"canonicalServiceForMeshExternal"`
}

// enabled returns the value of a feature, or its default if not given.
func enabled(feature *bool, otherwise bool) bool {
	if feature == nil {
		return otherwise
	}
	return *feature
}

type networkRule struct {
	CIDR    string            `yaml:"cidr"`
	Labels  map[string]string `yaml:"labels"`
	Network string            `yaml:"network"`
}

type namespace struct {
	Name        string            `yaml:"name"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
	Delete      bool              `yaml:"delete"`
}

type proxy struct {
	IP              string   `yaml:"ip"`
	IPs             []string `yaml:"ips"`
	Namespace       string   `yaml:"namespace"`
	Cluster         string   `yaml:"cluster"`
	DNSCapture      bool     `yaml:"dnsCapture"`
	DNSAutoAllocate bool     `yaml:"dnsAutoAllocate"`
}

func (p proxy) addresses() []string {
	if p.IP != "" {
		return append([]string{p.IP}, p.IPs...)
	}
	return p.IPs
}

// registrySpec is one of the additional registries.
type registrySpec struct {
	ID             string           `yaml:"id"`
	Type           string           `yaml:"type"`
	Provider       string           `yaml:"provider"`
	Cluster        string           `yaml:"cluster"`
	Deferred       bool             `yaml:"deferred"`
	Services       []staticService  `yaml:"services"`
	Endpoints      []staticEndpoint `yaml:"endpoints"`
	WorkloadLabels []staticLabels   `yaml:"workloadLabels"`
	Gateways       []staticGateway  `yaml:"gateways"`
}

// The values of registrySpec.Type.
const (
	typeStatic        = "static"
	typeWorkloadEntry = "workloadEntry"
)

type staticService struct {
	Hostname        string              `yaml:"hostname"`
	Namespace       string              `yaml:"namespace"`
	DefaultAddress  string              `yaml:"defaultAddress"`
	ClusterVIPs     map[string][]string `yaml:"clusterVIPs"`
	Ports           []staticPort        `yaml:"ports"`
	ServiceAccounts []string            `yaml:"serviceAccounts"`
	Labels          map[string]string   `yaml:"labels"`
}

type staticPort struct {
	Name     string `yaml:"name"`
	Port     uint32 `yaml:"port"`
	Protocol string `yaml:"protocol"`
}

type staticEndpoint struct {
	Hostname   string `yaml:"hostname"`
	PortName   string `yaml:"portName"`
	Port       uint32 `yaml:"port"`
	Address    string `yaml:"address"`
	TargetPort uint32 `yaml:"targetPort"`
}

type staticLabels struct {
	IP     string            `yaml:"ip"`
	Labels map[string]string `yaml:"labels"`
}

type staticGateway struct {
	Network        string `yaml:"network"`
	Cluster        string `yaml:"cluster"`
	Addr           string `yaml:"addr"`
	Address        string `yaml:"address"`
	Port           uint32 `yaml:"port"`
	HBONEPort      uint32 `yaml:"hbonePort"`
	ServiceAccount string `yaml:"serviceAccount"`
}

// step has exactly one of its actions, besides Registry and Note.
type step struct {
	Note       string         `yaml:"note"`
	Registry   string         `yaml:"registry"`
	Apply      *string        `yaml:"apply"`
	Delete     *objectRef     `yaml:"delete"`
	Workload   *workload      `yaml:"workload"`
	Namespace  *namespace     `yaml:"namespace"`
	MeshConfig *string        `yaml:"meshConfig"`
	ResyncEDS  *bool          `yaml:"resyncEDS"`
	Store      *storeStep     `yaml:"store"`
	Aggregate  *aggregateStep `yaml:"aggregate"`
}

type objectRef struct {
	Kind      string `yaml:"kind"`
	Namespace string `yaml:"namespace"`
	Name      string `yaml:"name"`
}

func (r objectRef) String() string { return r.Kind + "/" + r.Namespace + "/" + r.Name }

type workload struct {
	Event                  string            `yaml:"event"`
	Kind                   string            `yaml:"kind"`
	Name                   string            `yaml:"name"`
	Namespace              string            `yaml:"namespace"`
	Addresses              []string          `yaml:"addresses"`
	Labels                 map[string]string `yaml:"labels"`
	PortMap                map[string]uint32 `yaml:"portMap"`
	ServiceAccount         string            `yaml:"serviceAccount"`
	Network                string            `yaml:"network"`
	Locality               string            `yaml:"locality"`
	Cluster                string            `yaml:"cluster"`
	Weight                 uint32            `yaml:"weight"`
	TLSMode                string            `yaml:"tlsMode"`
	WorkloadName           string            `yaml:"workloadName"`
	EndpointNamespace      string            `yaml:"endpointNamespace"`
	Health                 string            `yaml:"health"`
	SendUnhealthyEndpoints bool              `yaml:"sendUnhealthyEndpoints"`
	HostName               string            `yaml:"hostName"`
	SubDomain              string            `yaml:"subDomain"`
	NodeName               string            `yaml:"nodeName"`
	DNSServiceEntryOnly    bool              `yaml:"dnsServiceEntryOnly"`
}

// storeStep is a direct call of the config store. Config holds one document, or
// several that are applied one after the other.
type storeStep struct {
	Op              string  `yaml:"op"`
	Config          string  `yaml:"config"`
	Kind            string  `yaml:"kind"`
	Namespace       string  `yaml:"namespace"`
	Name            string  `yaml:"name"`
	ResourceVersion *string `yaml:"resourceVersion"`
}

type aggregateStep struct {
	Op       string        `yaml:"op"`
	ID       string        `yaml:"id"`
	Provider string        `yaml:"provider"`
	Cluster  string        `yaml:"cluster"`
	Service  staticService `yaml:"service"`
	Hostname string        `yaml:"hostname"`
}

// Actions implements corpus.Step.
func (s step) Actions() []bool {
	return []bool{
		s.Apply != nil, s.Delete != nil, s.Workload != nil, s.Namespace != nil, s.MeshConfig != nil,
		s.ResyncEDS != nil, s.Store != nil, s.Aggregate != nil,
	}
}

// loadScenario reads a scenario, given without the suffix of its file.
func loadScenario(path string) (*scenario, error) {
	return corpus.Load(path, func(s *scenario) []step { return s.Steps })
}
