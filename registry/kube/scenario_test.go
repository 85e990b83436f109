// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"encoding/json"
	"errors"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/pilotkit/pilotkit/internal/test/corpus"
)

// scenario is the input of one case: README.md of the corpus, sections 2 and 3.
type scenario struct {
	Name        string        `yaml:"name"`
	Description string        `yaml:"description"`
	Options     scenarioOpts  `yaml:"options"`
	Clusters    []clusterSpec `yaml:"clusters"`
	Proxies     []proxySpec   `yaml:"proxies"`
	Initial     string        `yaml:"initial"`
	Steps       []step        `yaml:"steps"`
}

type scenarioOpts struct {
	ClusterID       string `yaml:"clusterID"`
	DomainSuffix    string `yaml:"domainSuffix"`
	SystemNamespace string `yaml:"systemNamespace"`
	MeshConfig      string `yaml:"meshConfig"`
	MeshNetworks    string `yaml:"meshNetworks"`
	ServiceEntries  bool   `yaml:"serviceEntries"`
	Features        struct {
		DualStack        bool `yaml:"dualStack"`
		ProxyFindPodByIP bool `yaml:"proxyFindPodByIP"`
	} `yaml:"features"`
}

type clusterSpec struct {
	ID         string `yaml:"id"`
	Deferred   bool   `yaml:"deferred"`
	Initial    string `yaml:"initial"`
	MeshConfig string `yaml:"meshConfig"`
}

type proxySpec struct {
	Pod       string            `yaml:"pod"`
	IP        string            `yaml:"ip"`
	IPs       []string          `yaml:"ips"`
	Namespace string            `yaml:"namespace"`
	Cluster   string            `yaml:"cluster"`
	Labels    map[string]string `yaml:"labels"`
	PodPorts  []struct {
		Name          string `yaml:"name"`
		ContainerPort uint32 `yaml:"containerPort"`
		Protocol      string `yaml:"protocol"`
	} `yaml:"podPorts"`
	Node string `yaml:"node"`
}

// step has exactly one of its actions, besides Cluster, Together and Note.
type step struct {
	Note         string     `yaml:"note"`
	Cluster      string     `yaml:"cluster"`
	Together     bool       `yaml:"together"`
	Apply        *string    `yaml:"apply"`
	Delete       *objectRef `yaml:"delete"`
	MeshConfig   *string    `yaml:"meshConfig"`
	MeshNetworks *string    `yaml:"meshNetworks"`
	Lifecycle    *lifecycle `yaml:"lifecycle"`
}

type lifecycle struct {
	Op      string `yaml:"op"`
	Cluster string `yaml:"cluster"`
}

type objectRef struct {
	Kind      string `yaml:"kind"`
	Namespace string `yaml:"namespace"`
	Name      string `yaml:"name"`
}

func (r objectRef) String() string { return r.Kind + "/" + r.Namespace + "/" + r.Name }

// Actions implements corpus.Step.
func (s step) Actions() []bool {
	return []bool{s.Apply != nil, s.Delete != nil, s.MeshConfig != nil, s.MeshNetworks != nil, s.Lifecycle != nil}
}

// loadScenario reads a scenario, given without the suffix of its file.
func loadScenario(path string) (*scenario, error) {
	return corpus.Load(path, func(s *scenario) []step { return s.Steps })
}

// document is one object of a scenario.
type document struct {
	objectRef
	text []byte
	// object is the Kubernetes object, nil for Istio objects.
	object runtime.Object
	// created reports whether the document has a creation time.
	created bool
}

// documents splits and reads YAML documents.
func documents(text string) ([]document, error) {
	var out []document
	dec := yaml.NewDecoder(strings.NewReader(text))
	for {
		var generic map[string]any
		err := dec.Decode(&generic)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		if generic == nil {
			continue
		}
		d, err := newDocument(generic)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
}

func newDocument(generic map[string]any) (document, error) {
	text, err := json.Marshal(generic)
	if err != nil {
		return document{}, err
	}
	var head struct {
		Kind     string
		Metadata struct {
			Name, Namespace   string
			CreationTimestamp *string
		}
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return document{}, err
	}
	d := document{
		objectRef: objectRef{head.Kind, head.Metadata.Namespace, head.Metadata.Name}, text: text,
		created: head.Metadata.CreationTimestamp != nil,
	}
	if d.object = emptyObject(head.Kind); d.object == nil {
		return d, nil
	}
	return d, sigsyaml.Unmarshal(text, d.object)
}

// emptyObject returns an object of a kind of Kubernetes, or nil.
func emptyObject(kind string) runtime.Object {
	switch kind {
	case "Service":
		return &corev1.Service{}
	case "EndpointSlice":
		return &discoveryv1.EndpointSlice{}
	case "Pod":
		return &corev1.Pod{}
	case "Node":
		return &corev1.Node{}
	case "Namespace":
		return &corev1.Namespace{}
	case "Endpoints":
		return &corev1.Endpoints{} //nolint:staticcheck // the corpus has some, which must not matter
	default:
		return nil
	}
}
