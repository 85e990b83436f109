// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ownDirectory holds the corpus of this module.
const ownDirectory = "../../testdata/conformance"

// A scenario is a pair of files with one name.
const (
	scenarioSuffix = ".yaml"
	goldenSuffix   = ".golden.json"
)

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

// check returns an error unless the step has exactly one action.
func (s step) check() error {
	n := 0
	for _, given := range []bool{
		s.Apply != nil, s.Delete != nil, s.Workload != nil, s.Namespace != nil, s.MeshConfig != nil,
		s.ResyncEDS != nil, s.Store != nil, s.Aggregate != nil,
	} {
		if given {
			n++
		}
	}
	if n != 1 {
		return fmt.Errorf("has %d actions, must have one", n)
	}
	return nil
}

// loadScenario reads a scenario strictly: what the runner does not know it cannot
// replay.
func loadScenario(file string) (*scenario, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	s := &scenario{}
	if err := dec.Decode(s); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for i, st := range s.Steps {
		if err := st.check(); err != nil {
			return nil, fmt.Errorf("%s: step %d %w", file, i, err)
		}
	}
	return s, nil
}

// scenarioNames returns the scenarios below a directory as "topic/name", sorted. A
// corpus may have folders above its topics, and dir may be a link to it. A folder
// with a README.md of its own is a corpus of another format.
func scenarioNames(dir string) ([]string, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && path != dir {
			if _, err := os.Stat(filepath.Join(path, "README.md")); err == nil {
				return filepath.SkipDir
			}
		}
		base, found := strings.CutSuffix(path, scenarioSuffix)
		if err != nil || e.IsDir() || !found {
			return err
		}
		rel, err := filepath.Rel(dir, base)
		names = append(names, filepath.ToSlash(rel))
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	if len(names) == 0 {
		return nil, fmt.Errorf("no scenarios in %s", dir)
	}
	return names, nil
}
