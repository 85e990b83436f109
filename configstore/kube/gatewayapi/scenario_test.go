// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/manifest"
	"github.com/pilotkit/pilotkit/internal/test/corpus"

	networking "istio.io/api/networking/v1alpha3"
)

// goldenSuffix is the suffix of the recording of a scenario.
const goldenSuffix = ".golden.json"

// scenario is the input of one case: README.md of the corpus, section 2.
type scenario struct {
	Name        string         `yaml:"name"`
	Description string         `yaml:"description"`
	Options     map[string]any `yaml:"options"` // for Ingresses only
	Initial     string         `yaml:"initial"`
	Steps       []step         `yaml:"steps"`
}

type step struct {
	Apply      *string    `yaml:"apply"`
	Delete     *objectRef `yaml:"delete"`
	MeshConfig *string    `yaml:"meshConfig"` // for Ingresses only
	Together   bool       `yaml:"together"`   // a step is a batch anyway
}

// Actions implements corpus.Step.
func (s step) Actions() []bool { return []bool{s.Apply != nil, s.Delete != nil, s.MeshConfig != nil} }

type objectRef struct {
	Kind      string `yaml:"kind"`
	Namespace string `yaml:"namespace"`
	Name      string `yaml:"name"`
}

func loadScenario(path string) (*scenario, error) {
	return corpus.Load(path, func(s *scenario) []step { return s.Steps })
}

// golden is a recording: README.md, section 3.
type golden struct {
	Initial observation   `json:"initial"`
	Steps   []observation `json:"steps"`
}

// observation is the state at one step.
type observation struct {
	Index           int          `json:"index"`
	Results         []any        `json:"results"`
	Gateways        section      `json:"gateways"`
	VirtualServices section      `json:"virtualServices"`
	DestRules       section      `json:"destinationRules"`
	Status          section      `json:"status"`
	Notified        []string     `json:"notified"`
	Alternatives    alternatives `json:"alternatives"`
}

// alternatives are the variants of a section, except for notified.
type alternatives map[string][][]map[string]any

// UnmarshalJSON implements json.Unmarshaler.
func (a *alternatives) UnmarshalJSON(data []byte) error {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	*a = alternatives{}
	for name, list := range raw {
		if name == "notified" {
			continue
		}
		var variants [][]map[string]any
		if err := json.Unmarshal(list, &variants); err != nil {
			return err
		}
		(*a)[name] = variants
	}
	return nil
}

// section is a list of objects, or "same".
type section struct {
	same bool
	list []map[string]any
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *section) UnmarshalJSON(data []byte) error {
	if string(data) == `"same"` {
		s.same = true
		return nil
	}
	return json.Unmarshal(data, &s.list)
}

func loadGolden(file string) (*golden, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	g := &golden{}
	if err := json.Unmarshal(data, g); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	last := &g.Initial
	for i := range g.Steps {
		now := &g.Steps[i]
		for _, pair := range [][2]*section{
			{&now.Gateways, &last.Gateways},
			{&now.VirtualServices, &last.VirtualServices},
			{&now.DestRules, &last.DestRules},
			{&now.Status, &last.Status},
		} {
			if pair[0].same {
				*pair[0] = *pair[1]
			}
		}
		last = now
	}
	return g, nil
}

// documents splits a text into documents.
func documents(text string) ([]map[string]any, error) {
	var out []map[string]any
	dec := yaml.NewDecoder(strings.NewReader(text))
	for {
		var doc map[string]any
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		if doc != nil {
			labelTexts(doc)
			out = append(out, doc)
		}
	}
}

// labelTexts converts the values of labels to texts, because some documents have other types.
func labelTexts(doc map[string]any) {
	metadata, _ := doc["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	for name, value := range labels {
		labels[name] = fmt.Sprint(value)
	}
}

// newObject returns an empty object of a kind, or nil if the Converter does not read the kind.
func newObject(kind string) (metav1.Object, error) {
	switch kind {
	case "GatewayClass":
		return &gatewayv1.GatewayClass{}, nil
	case "Gateway":
		return &gatewayv1.Gateway{}, nil
	case "ListenerSet":
		return &gatewayv1.ListenerSet{}, nil
	case "HTTPRoute":
		return &gatewayv1.HTTPRoute{}, nil
	case "GRPCRoute":
		return &gatewayv1.GRPCRoute{}, nil
	case "TLSRoute":
		return &gatewayv1.TLSRoute{}, nil
	case "TCPRoute":
		return &gatewayv1.TCPRoute{}, nil
	case "ReferenceGrant":
		return &gatewayv1.ReferenceGrant{}, nil
	case "BackendTLSPolicy":
		return &gatewayv1.BackendTLSPolicy{}, nil
	case "Namespace":
		return &corev1.Namespace{}, nil
	case "Service":
		return &corev1.Service{}, nil
	case "Secret":
		return &corev1.Secret{}, nil
	case "ConfigMap":
		return &corev1.ConfigMap{}, nil
	case "EndpointSlice":
		return &discoveryv1.EndpointSlice{}, nil
	case "Ingress", "IngressClass", "Node", "Pod":
		return nil, nil //nolint:nilnil // as said
	default:
		return nil, fmt.Errorf("unknown kind %q", kind)
	}
}

// setObject returns the change of an object.
func setObject(object metav1.Object) Change {
	switch o := object.(type) {
	case *gatewayv1.GatewayClass:
		return Set(o)
	case *gatewayv1.Gateway:
		return Set(o)
	case *gatewayv1.ListenerSet:
		return Set(o)
	case *gatewayv1.HTTPRoute:
		return Set(o)
	case *gatewayv1.GRPCRoute:
		return Set(o)
	case *gatewayv1.TLSRoute:
		return Set(o)
	case *gatewayv1.TCPRoute:
		return Set(o)
	case *gatewayv1.ReferenceGrant:
		return Set(o)
	case *gatewayv1.BackendTLSPolicy:
		return Set(o)
	case *corev1.Namespace:
		return Set(o)
	case *corev1.Service:
		return Set(o)
	case *corev1.Secret:
		return Set(o)
	case *corev1.ConfigMap:
		return Set(o)
	case *discoveryv1.EndpointSlice:
		return Set(o)
	}
	panic(fmt.Sprintf("%T", object))
}

// deleteObject returns the deletion of an object.
func deleteObject(ref objectRef) (Change, error) {
	deletes := map[string]func(string, string) Change{
		"GatewayClass": Delete[*gatewayv1.GatewayClass], "Gateway": Delete[*gatewayv1.Gateway],
		"ListenerSet": Delete[*gatewayv1.ListenerSet], "HTTPRoute": Delete[*gatewayv1.HTTPRoute],
		"GRPCRoute": Delete[*gatewayv1.GRPCRoute], "TLSRoute": Delete[*gatewayv1.TLSRoute],
		"TCPRoute": Delete[*gatewayv1.TCPRoute], "ReferenceGrant": Delete[*gatewayv1.ReferenceGrant],
		"BackendTLSPolicy": Delete[*gatewayv1.BackendTLSPolicy], "Namespace": Delete[*corev1.Namespace],
		"Service": Delete[*corev1.Service], "Secret": Delete[*corev1.Secret], "ConfigMap": Delete[*corev1.ConfigMap],
		"EndpointSlice": Delete[*discoveryv1.EndpointSlice], "ServiceEntry": Delete[*ServiceEntry],
	}
	change, ok := deletes[ref.Kind]
	if !ok {
		if _, err := newObject(ref.Kind); err != nil {
			return Change{}, err
		}
		return Change{}, nil
	}
	return change(ref.Namespace, ref.Name), nil
}

// serviceEntryOf parses the document of a ServiceEntry.
func serviceEntryOf(doc map[string]any) (*ServiceEntry, error) {
	text, err := yaml.Marshal(doc)
	if err != nil {
		return nil, err
	}
	configs, err := manifest.ParseAll(istio.Schemas(), text, manifest.Options{})
	if err != nil {
		return nil, err
	}
	return &ServiceEntry{Key{configs[0].Namespace, configs[0].Name}, configs[0].Spec.(*networking.ServiceEntry)}, nil
}
