// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/pilotkit/pilotkit/internal/test/corpus"
)

// ownDirectory holds the corpus of this module.
const ownDirectory = "../../../../testdata/conformance/traffic"

// goldenSuffix is the suffix of the recording of a scenario.
const goldenSuffix = ".golden.json"

// scenario is the input of one case: README.md, section 1.
type scenario struct {
	Name        string      `yaml:"name"`
	Description string      `yaml:"description"`
	Options     options     `yaml:"options"`
	Proxies     []proxySpec `yaml:"proxies"`
	Steps       []step      `yaml:"steps"`
}

type options struct {
	MeshConfig   map[string]any `yaml:"meshConfig"`
	MeshNetworks map[string]any `yaml:"meshNetworks"`
	Features     struct {
		FilterGatewayClusterConfig bool `yaml:"filterGatewayClusterConfig"`
		// MultipleCustomProviders is that of traffic.Options.
		MultipleCustomProviders bool `yaml:"multipleCustomProviders"`
	} `yaml:"features"`
}

// The values of proxySpec.Kind.
const (
	kindSidecar = "sidecar"
	kindRouter  = "router"
	kindGRPC    = "grpc"
)

type proxySpec struct {
	Name      string            `yaml:"name"`
	Kind      string            `yaml:"kind"`
	IP        string            `yaml:"ip"`
	Namespace string            `yaml:"namespace"`
	Labels    map[string]string `yaml:"labels"`
	Locality  string            `yaml:"locality"`
	Network   string            `yaml:"network"`
	// Listeners are the listeners that a gRPC client requests.
	Listeners []string `yaml:"listeners"`
}

// step has one action.
type step struct {
	Note   string     `yaml:"note"`
	Apply  *string    `yaml:"apply"`
	Delete *objectRef `yaml:"delete"`
}

type objectRef struct {
	Kind      string `yaml:"kind"`
	Namespace string `yaml:"namespace"`
	Name      string `yaml:"name"`
}

func (r objectRef) String() string { return r.Kind + "/" + r.Namespace + "/" + r.Name }

// Actions implements corpus.Step.
func (s step) Actions() []bool { return []bool{s.Apply != nil, s.Delete != nil} }

// loadScenario reads a scenario, given without the suffix of its file.
func loadScenario(path string) (*scenario, error) {
	return corpus.Load(path, func(s *scenario) []step { return s.Steps })
}

// golden is a recording: README.md, section 2.
type golden struct {
	Steps []recordedStep `json:"steps"`
}

type recordedStep struct {
	Index   int                      `json:"index"`
	Results []result                 `json:"results"`
	Proxies map[string]recordedProxy `json:"proxies"`
}

type result struct {
	Object   string   `json:"object"`
	Outcome  string   `json:"outcome"`
	Messages []string `json:"messages"`
	Warnings []string `json:"warnings"`
	// spec is that of a document of ours.
	spec any
}

// recordedProxy is the configuration of a proxy, by section: a list of equally valid variants of
// each.
type recordedProxy map[section][]resources

// UnmarshalJSON reads a proxy. "same" leaves a section out: see resolve.
func (p *recordedProxy) UnmarshalJSON(data []byte) error {
	var raw map[section]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	var alternatives map[section][]resources
	if a, ok := raw["alternatives"]; ok {
		if err := json.Unmarshal(a, &alternatives); err != nil {
			return err
		}
	}
	delete(raw, "alternatives")
	*p = make(recordedProxy)
	for s, list := range raw {
		if !slices.Contains(sections, s) {
			return fmt.Errorf("unknown section %q", s)
		}
		if string(list) == `"same"` {
			(*p)[s] = nil
			continue
		}
		var one resources
		if err := json.Unmarshal(list, &one); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
		(*p)[s] = append([]resources{one}, alternatives[s]...)
	}
	return nil
}

// loadGolden reads a recording and replaces "same" by the content that it refers to.
func loadGolden(file string) (*golden, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	g := &golden{}
	if err := json.Unmarshal(data, g); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for i, st := range g.Steps {
		for name, p := range st.Proxies {
			for s, variants := range p {
				if variants != nil {
					continue
				}
				if i == 0 {
					return nil, fmt.Errorf("%s: nothing for %s of %s to be the same as", file, s, name)
				}
				p[s] = g.Steps[i-1].Proxies[name][s]
			}
		}
	}
	return g, nil
}
