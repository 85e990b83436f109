// SPDX-License-Identifier: Apache-2.0

package ingress_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	networking "istio.io/api/networking/v1alpha3"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"

	"github.com/pilotkit/pilotkit/configstore/kube/ingress"
)

// scenario is an input, in the format of testdata/conformance/README.md.
type scenario struct {
	Options struct {
		MeshConfig string `json:"meshConfig"`
	} `json:"options"`
	Initial string `json:"initial"`
	Steps   []step `json:"steps"`
}

type step struct {
	Apply      *string `json:"apply"`
	Together   bool    `json:"together"`
	MeshConfig *string `json:"meshConfig"`
	Delete     *struct {
		Kind      string `json:"kind"`
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"delete"`
}

func loadScenario(path string) (*scenario, error) {
	data, err := os.ReadFile(path + ".yaml")
	if err != nil {
		return nil, err
	}
	s := &scenario{}
	return s, yaml.Unmarshal(data, s)
}

// cluster is the API server of a scenario, with the objects of a world.
type cluster struct {
	*world
	created map[string]time.Time // of all objects of all kinds that exist
	objects int                  // that were created
}

func newCluster() *cluster { return &cluster{world: newWorld(), created: map[string]time.Time{}} }

var epoch = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

// apply stores the documents of a text, and returns the changes.
func (c *cluster) apply(text string) ([]ingress.Change, error) {
	var out []ingress.Change
	for document := range strings.SplitSeq("\n"+text, "\n---") {
		object := map[string]any{}
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			return nil, err
		}
		if len(object) == 0 {
			continue
		}
		change, err := c.store(object)
		if err != nil {
			return nil, err
		}
		out = append(out, change)
	}
	return out, nil
}

func (c *cluster) store(object map[string]any) (ingress.Change, error) {
	metadata, _ := object["metadata"].(map[string]any)
	kind, namespace, name := fmt.Sprint(object["kind"]), "", fmt.Sprint(metadata["name"])
	if ns, ok := metadata["namespace"]; ok {
		namespace = fmt.Sprint(ns)
	}
	id := kind + "/" + namespace + "/" + name
	at, exists := c.created[id]
	if given, ok := metadata["creationTimestamp"].(string); ok && !exists {
		var err error
		if at, err = time.Parse(time.RFC3339, given); err != nil {
			return ingress.Change{}, fmt.Errorf("%s: %w", id, err)
		}
	} else if !exists {
		at = epoch.Add(time.Duration(c.objects) * time.Second)
	}
	if !exists {
		c.objects++
	}
	c.created[id] = at
	metadata["creationTimestamp"] = at.Format(time.RFC3339)
	for _, texts := range []string{"annotations", "labels"} { // "As written" may be a number or true.
		values, _ := metadata[texts].(map[string]any)
		for k, v := range values {
			values[k] = fmt.Sprint(v)
		}
	}
	typed := map[string]any{
		"Ingress": &networkingv1.Ingress{}, "IngressClass": &networkingv1.IngressClass{}, "Service": &corev1.Service{},
		"Pod": &corev1.Pod{}, "Node": &corev1.Node{},
	}[kind]
	if typed == nil {
		return ingress.Change{}, nil // It is of no consequence for Ingresses.
	}
	data, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(data, typed)
	}
	if err != nil {
		return ingress.Change{}, fmt.Errorf("%s: %w", id, err)
	}
	return c.set(typed), nil
}

func (c *cluster) configure(text string) (ingress.Change, error) {
	raw := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &raw); err != nil {
		return ingress.Change{}, err
	}
	fields := map[string]string{}
	for name, value := range raw {
		fields[name] = fmt.Sprint(value)
	}
	m, err := meshOf(fields)
	return c.setMesh(m), err
}

// batches returns the changes of a step: one batch for each document, or one of all.
func (c *cluster) batches(s step) ([][]ingress.Change, error) {
	switch {
	case s.Apply != nil:
		changes, err := c.apply(*s.Apply)
		if s.Together {
			return [][]ingress.Change{changes}, err
		}
		var out [][]ingress.Change
		for _, change := range changes {
			out = append(out, []ingress.Change{change})
		}
		return out, err
	case s.MeshConfig != nil:
		change, err := c.configure(*s.MeshConfig)
		return [][]ingress.Change{{change}}, err
	case s.Delete != nil:
		delete(c.created, s.Delete.Kind+"/"+s.Delete.Namespace+"/"+s.Delete.Name)
		return [][]ingress.Change{{c.remove(s.Delete.Kind, s.Delete.Namespace, s.Delete.Name)}}, nil
	default:
		return nil, fmt.Errorf("a step without an action")
	}
}

// recording is a golden file, with "same" replaced by its meaning.
type recording struct{ observations []observation }

// observation contains the observed variants of each section.
type observation map[string][]json.RawMessage

func loadRecording(path string) (*recording, error) {
	data, err := os.ReadFile(path + ".golden.json")
	if err != nil {
		return nil, err
	}
	var file struct {
		Initial map[string]json.RawMessage   `json:"initial"`
		Steps   []map[string]json.RawMessage `json:"steps"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, err
	}
	r, last := &recording{}, observation{}
	for _, raw := range append([]map[string]json.RawMessage{file.Initial}, file.Steps...) {
		o := observation{}
		alternatives := map[string][]json.RawMessage{}
		if text := raw["alternatives"]; text != nil {
			if err := json.Unmarshal(text, &alternatives); err != nil {
				return nil, err
			}
		}
		for _, section := range []string{"gateways", "virtualServices", "status"} {
			switch variants := alternatives[section]; {
			case len(variants) > 0:
				o[section] = variants
			case string(raw[section]) == `"same"`:
				o[section] = last[section]
			default:
				o[section] = []json.RawMessage{raw[section]}
			}
		}
		r.observations, last = append(r.observations, o), o
	}
	return r, nil
}

// recordedObject is an element of a section.
type recordedObject struct {
	Kind        string            `json:"kind"`
	Namespace   string            `json:"namespace"`
	Name        string            `json:"name"`
	Annotations map[string]string `json:"annotations"`
	Spec        json.RawMessage   `json:"spec"`
	Status      struct {
		LoadBalancer networkingv1.IngressLoadBalancerStatus `json:"loadBalancer"`
	} `json:"status"`
}

// variants returns the combinations of the observed variants, as far as they concern Ingresses.
func (o observation) variants() ([]*observed, error) {
	out := []*observed{{map[string]*networking.Gateway{}, map[string]observedHost{}, map[string][]string{}}}
	for _, section := range []string{"gateways", "virtualServices", "status"} {
		var next []*observed
		for _, before := range out {
			for _, text := range o[section] {
				var objects []recordedObject
				if err := json.Unmarshal(text, &objects); err != nil {
					return nil, fmt.Errorf("%s: %w", section, err)
				}
				now := *before
				if err := now.read(section, objects); err != nil {
					return nil, fmt.Errorf("%s: %w", section, err)
				}
				next = append(next, &now)
			}
		}
		out = next
	}
	return out, nil
}

// read replaces a section.
func (o *observed) read(section string, objects []recordedObject) error {
	switch section {
	case "gateways":
		o.gateways = map[string]*networking.Gateway{}
	case "virtualServices":
		o.hosts = map[string]observedHost{}
	case "status":
		o.statuses = map[string][]string{}
	}
	for _, object := range objects {
		key := object.Namespace + "/" + object.Name
		switch {
		case section == "gateways" && strings.Contains(object.Name, "-istio-autogenerated-k8s-ingress-"):
			g := &networking.Gateway{}
			if err := protojson.Unmarshal(object.Spec, g); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
			o.gateways[key] = g
		case section == "virtualServices" && object.Annotations["internal.istio.io/route-semantics"] == "ingress":
			v := &networking.VirtualService{}
			if err := protojson.Unmarshal(object.Spec, v); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
			if _, twice := o.hosts[v.GetHosts()[0]]; twice || len(v.GetHosts()) != 1 {
				return fmt.Errorf("%s: several VirtualServices of a host", key)
			}
			o.hosts[v.GetHosts()[0]] = observedHost{object.Namespace, v}
		case section == "status" && object.Kind == "Ingress":
			o.statuses[key] = addressesOf(object.Status.LoadBalancer.Ingress)
		}
	}
	return nil
}
