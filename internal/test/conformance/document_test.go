// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/manifest"
)

// document is one object of a scenario.
type document struct {
	ref    objectRef
	config configstore.Config
	// refused: the document cannot be read as an object of its kind.
	refused error
}

// created is the explicit creation time, as the files write it, or timeZero.
func (d document) created() string { return formatTime(d.config.CreationTimestamp) }

func formatTime(t time.Time) string {
	if t.IsZero() {
		return timeZero
	}
	return t.UTC().Format(time.RFC3339)
}

// documents splits and reads YAML documents. An object that cannot be read is
// kept, with the reason: the recorded store refused it.
func documents(text string) ([]document, error) {
	var out []document
	dec := yaml.NewDecoder(strings.NewReader(text))
	for {
		var node yaml.Node
		err := dec.Decode(&node)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		if node.Kind == 0 || len(node.Content) == 0 || node.Content[0].Tag == "!!null" {
			continue
		}
		doc, err := readDocument(&node)
		if err != nil {
			return nil, err
		}
		out = append(out, doc)
	}
}

// readDocument reads one document. Only a document that is not an object at all is an error.
func readDocument(node *yaml.Node) (document, error) {
	var head struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string `yaml:"kind"`
		Metadata   struct {
			Name      string `yaml:"name"`
			Namespace string `yaml:"namespace"`
		} `yaml:"metadata"`
	}
	if err := node.Decode(&head); err != nil || head.Kind == "" {
		return document{}, fmt.Errorf("not an object: %w", err)
	}
	var text bytes.Buffer
	if err := yaml.NewEncoder(&text).Encode(node); err != nil {
		return document{}, err
	}
	kind := kindOf(head.Kind)
	if group, version, ok := strings.Cut(head.APIVersion, "/"); ok && !istio.Schemas().Has(kind) {
		kind = configstore.GroupVersionKind{Group: group, Version: version, Kind: head.Kind}
	}
	doc := document{ref: objectRef{Kind: head.Kind, Namespace: head.Metadata.Namespace, Name: head.Metadata.Name}}
	doc.config = configstore.Config{Meta: configstore.Meta{
		GroupVersionKind: kind, Name: head.Metadata.Name, Namespace: head.Metadata.Namespace,
	}}
	if !istio.Schemas().Has(kind) {
		return doc, nil
	}
	// The recorded reader ignored unknown fields.
	parsed := manifest.Parse(istio.Schemas(), text.Bytes(), manifest.Options{Lenient: true})
	if len(parsed) != 1 {
		return document{}, fmt.Errorf("%s: %d objects in one document", doc.ref, len(parsed))
	}
	if doc.refused = parsed[0].Err; doc.refused == nil {
		doc.config = parsed[0].Config
	}
	return doc, nil
}

// kindOf finds an Istio kind by its name. An unknown one has the name only.
func kindOf(name string) configstore.GroupVersionKind {
	for _, s := range istio.Schemas().All() {
		if s.GroupVersionKind.Kind == name {
			return s.GroupVersionKind
		}
	}
	return configstore.GroupVersionKind{Kind: name}
}
