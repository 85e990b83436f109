// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/configstore"
)

// stored is an object as the API server returned it: all of its fields as text, so that a write
// preserves them, and the fields that we know.
type stored struct {
	fields map[string]json.RawMessage
	object object
}

func parse(data []byte) (*stored, error) {
	s := &stored{}
	if err := json.Unmarshal(data, &s.fields); err != nil {
		return nil, err
	}
	return s, json.Unmarshal(data, &s.object)
}

// set writes a field; nil removes it.
func set(fields map[string]json.RawMessage, name string, value any) error {
	if value == nil {
		delete(fields, name)
		return nil
	}
	data, err := json.Marshal(value)
	fields[name] = data
	return err
}

// setMessage writes a field that contains a message; nil removes it. The unknown fields of the
// stored text stay: see rewrite.
func setMessage(fields map[string]json.RawMessage, name string, old, next proto.Message) error {
	if next == nil {
		return set(fields, name, nil)
	}
	data, err := rewrite(fields[name], old, next)
	fields[name] = data
	return err
}

// setContent writes the content of the config except its status. An equal spec keeps its text.
func (w *write) setContent(s *stored) error {
	metadata := map[string]json.RawMessage{}
	if text := s.fields["metadata"]; text != nil {
		if err := json.Unmarshal(text, &metadata); err != nil {
			return err
		}
	}
	c, live := &w.config, w.decoded(s)
	owners, err := rewriteOwners(metadata["ownerReferences"], live.OwnerReferences, c.OwnerReferences)
	if err != nil {
		return err
	}
	for name, value := range map[string]any{
		"name":            c.Name,
		"namespace":       orNil(c.Namespace, c.Namespace == ""),
		"labels":          orNil(c.Labels, len(c.Labels) == 0),
		"annotations":     orNil(c.Annotations, len(c.Annotations) == 0),
		"ownerReferences": orNil(owners, len(c.OwnerReferences) == 0),
	} {
		if err := set(metadata, name, value); err != nil {
			return err
		}
	}
	if err := set(s.fields, "metadata", metadata); err != nil {
		return err
	}
	if live.Spec != nil && w.kind.schema.EqualSpecs(live.Spec, c.Spec) {
		return nil
	}
	if err := setMessage(s.fields, "spec", live.Spec, c.Spec); err != nil {
		return err
	}
	return w.keepsUnread(s)
}

// keepsUnread returns an error if the spec has unknown fields that the text to write does not
// contain. JSON cannot express them, or the stored object does not have them. A policy without them
// would have another meaning.
func (w *write) keepsUnread(s *stored) error {
	written := s.object
	written.Spec = s.fields["spec"]
	spec, err := w.kind.decoder().decodeSpec(&written)
	if err != nil {
		return err
	}
	has := configstore.Unread(spec)
	for _, u := range configstore.Unread(w.config.Spec) {
		if !slices.Contains(has, u) {
			return &configstore.ValidationError{Key: w.config.Key(), Violations: []configstore.Violation{u}}
		}
	}
	return nil
}

func orNil(value any, absent bool) any {
	if absent {
		return nil
	}
	return value
}

// create creates the object.
func (w *write) create() (string, error) {
	s := &stored{fields: map[string]json.RawMessage{}}
	if err := w.setContent(s); err != nil {
		return "", err
	}
	if err := setMessage(s.fields, "status", nil, w.config.Status); err != nil {
		return "", err
	}
	created, err := w.call(func(version int) *rest.Request {
		s.fields["apiVersion"] = fmt.Appendf(nil, "%q", w.kind.gvk().Group+"/"+w.kind.versions[version])
		s.fields["kind"] = fmt.Appendf(nil, "%q", w.kind.gvk().Kind)
		data, _ := json.Marshal(s.fields) //nolint:errchkjson // Every field was marshalled before.
		return w.cache.client.Post().AbsPath(w.kind.path(version, w.config.Namespace)...).Body(data)
	})
	if err != nil {
		return "", err
	}
	return w.addStatus(created)
}

// replace writes the content, and then the status if there is one.
func (w *write) replace() (string, error) {
	s, err := w.modify(func(s *stored) (*stored, error) {
		if w.changesNothing(s) {
			return s, nil
		}
		if err := w.setContent(s); err != nil {
			return nil, err
		}
		if w.config.Status != nil { // effective for kinds without a status subresource
			if err := setMessage(s.fields, "status", w.decoded(s).Status, w.config.Status); err != nil {
				return nil, err
			}
		}
		return w.put(s)
	})
	if err != nil {
		return "", err
	}
	return w.addStatus(s)
}

// addStatus writes the status if the object does not have it yet. It writes at the resource version
// of the content's write, so that later changes of others are not overwritten.
func (w *write) addStatus(s *stored) (string, error) {
	if w.config.Status == nil || w.hasStatus(s) {
		return s.object.ResourceVersion, nil
	}
	w.half = true
	s, err := w.putStatus(s)
	if err != nil {
		return "", err
	}
	return s.object.ResourceVersion, nil
}

// replaceStatus writes the status alone.
func (w *write) replaceStatus() (string, error) {
	s, err := w.modify(func(s *stored) (*stored, error) {
		if w.hasStatus(s) {
			return s, nil
		}
		return w.putStatus(s)
	})
	if err != nil {
		return "", err
	}
	return s.object.ResourceVersion, nil
}

// hasStatus reports whether the object has the status to be written.
func (w *write) hasStatus(s *stored) bool {
	if w.config.Status == nil {
		return isNull(s.object.Status) || w.kind.schema.Status == nil
	}
	return configstore.EqualMessage(w.decoded(s).Status, w.config.Status)
}

// putStatus writes the status of an object that was read.
func (w *write) putStatus(s *stored) (*stored, error) {
	if err := setMessage(s.fields, "status", w.decoded(s).Status, w.config.Status); err != nil {
		return nil, err
	}
	put, err := w.put(s, "status")
	if apierrors.IsNotFound(err) { // The object exists, so its kind may have no such subresource.
		put, err = w.put(s)
	}
	return put, err
}

// modify reads the object, checks the resource version, and calls change with it. If no resource
// version is given, it retries after a conflict.
func (w *write) modify(change func(*stored) (*stored, error)) (*stored, error) {
	for given := w.config.ResourceVersion; ; {
		s, err := w.get()
		if err != nil {
			return nil, err
		}
		if live := s.object.ResourceVersion; given != "" && given != live {
			return nil, fmt.Errorf("%w: %q is given, %q is stored", configstore.ErrConflict, given, live)
		}
		if s, err = change(s); err == nil || given != "" || !apierrors.IsConflict(err) {
			return s, err
		}
	}
}

// changesNothing reports whether the object has the content to be written, regardless of its
// spelling.
func (w *write) changesNothing(s *stored) bool {
	live, c := w.decoded(s), &w.config
	return live.Spec != nil && w.kind.schema.EqualSpecs(live.Spec, c.Spec) && maps.Equal(live.Labels, c.Labels) &&
		maps.Equal(live.Annotations, c.Annotations) && slices.Equal(live.OwnerReferences, c.OwnerReferences)
}

// decoded returns the object as a config. A spec or status that cannot be decoded is nil.
func (w *write) decoded(s *stored) configstore.Config {
	d := w.kind.decoder()
	config := configstore.Config{Meta: d.meta(&s.object)}
	if spec, err := d.decodeSpec(&s.object); err == nil {
		config.Spec = spec
	}
	config.Status, _ = d.decodeStatus(&s.object)
	return config
}

// remove deletes the object.
func (w *write) remove(resourceVersion *string) error {
	body, err := json.Marshal(metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: resourceVersion}})
	if err != nil {
		return err
	}
	_, err = w.call(func(version int) *rest.Request {
		return w.cache.client.Delete().AbsPath(w.path(version)...).Body(body)
	})
	return err
}
