// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pilotkit/pilotkit/configstore"
)

// object is a custom resource as it is read. One Go type represents all kinds; its spec stays text
// until the object is selected.
type object struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   json.RawMessage `json:"spec,omitempty"`
	Status json.RawMessage `json:"status,omitempty"`
}

// objectList is the response to a list.
type objectList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []object `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (o *object) DeepCopyObject() runtime.Object {
	c := &object{TypeMeta: o.TypeMeta, Spec: slices.Clone(o.Spec), Status: slices.Clone(o.Status)}
	o.DeepCopyInto(&c.ObjectMeta)
	return c
}

// DeepCopyObject implements runtime.Object.
func (l *objectList) DeepCopyObject() runtime.Object {
	c := &objectList{TypeMeta: l.TypeMeta, Items: make([]object, len(l.Items))}
	l.DeepCopyInto(&c.ListMeta)
	for i := range l.Items {
		c.Items[i] = *l.Items[i].DeepCopyObject().(*object) //nolint:forcetypeassert // Its own type.
	}
	return c
}

// crd contains the relevant fields of a CustomResourceDefinition. The large remainder is dropped.
type crd struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   crdSpec   `json:"spec"`
	Status crdStatus `json:"status"`
}

type crdSpec struct {
	Versions []crdVersion `json:"versions"`
}

type crdVersion struct {
	Name   string `json:"name"`
	Served bool   `json:"served"`
}

type crdStatus struct {
	Conditions []metav1.Condition `json:"conditions"`
}

type crdList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []crd `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (c *crd) DeepCopyObject() runtime.Object {
	d := &crd{TypeMeta: c.TypeMeta}
	c.DeepCopyInto(&d.ObjectMeta)
	d.Spec.Versions = slices.Clone(c.Spec.Versions)
	d.Status.Conditions = slices.Clone(c.Status.Conditions)
	return d
}

// DeepCopyObject implements runtime.Object.
func (l *crdList) DeepCopyObject() runtime.Object {
	d := &crdList{TypeMeta: l.TypeMeta, Items: make([]crd, len(l.Items))}
	l.DeepCopyInto(&d.ListMeta)
	for i := range l.Items {
		d.Items[i] = *l.Items[i].DeepCopyObject().(*crd) //nolint:forcetypeassert // Its own type.
	}
	return d
}

// serves reports whether objects can be read and written under a version.
func (c *crd) serves(version string) bool {
	return slices.ContainsFunc(c.Status.Conditions, func(c metav1.Condition) bool {
		return c.Type == "Established" && c.Status == metav1.ConditionTrue
	}) && slices.Contains(c.Spec.Versions, crdVersion{Name: version, Served: true})
}

const crdGroup = "apiextensions.k8s.io"

// schemeOf registers the Go types of the kinds, under all of their versions.
func schemeOf(schemas configstore.Schemas) *runtime.Scheme {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	crds := schema.GroupVersion{Group: crdGroup, Version: "v1"}
	scheme.AddKnownTypeWithName(crds.WithKind("CustomResourceDefinition"), &crd{})
	scheme.AddKnownTypeWithName(crds.WithKind("CustomResourceDefinitionList"), &crdList{})
	for _, s := range schemas.All() {
		for _, version := range versions(&s) {
			gv := schema.GroupVersion{Group: s.GroupVersionKind.Group, Version: version}
			scheme.AddKnownTypeWithName(gv.WithKind(s.GroupVersionKind.Kind), &object{})
			scheme.AddKnownTypeWithName(gv.WithKind(s.GroupVersionKind.Kind+"List"), &objectList{})
		}
	}
	return scheme
}

// versions returns the versions under which a kind may be served, in order of preference.
func versions(s *configstore.Schema) []string {
	return append([]string{s.GroupVersionKind.Version}, s.Aliases...)
}
