// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"fmt"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/manifest"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
)

// step runs a step. after is called when everything that one document set off has
// finished.
func (sys *system) step(st step, after func()) error {
	c, err := sys.cluster(st.Cluster)
	if err != nil {
		return err
	}
	switch {
	case st.Apply != nil:
		docs, err := documents(*st.Apply)
		if err != nil {
			return err
		}
		for _, d := range docs {
			if _, err := sys.applyOne(c, d); err != nil {
				return err
			}
			if !st.Together {
				sys.catchUp()
				after()
			}
		}
	case st.Delete != nil:
		if err := sys.delete(c, *st.Delete); err != nil {
			return err
		}
	case st.MeshConfig != nil:
		if c.mesh, err = parseMeshConfig(*st.MeshConfig); err != nil {
			return err
		}
		sys.updateMesh()
	case st.MeshNetworks != nil:
		if sys.networks, err = parseNetworks(*st.MeshNetworks); err != nil {
			return err
		}
		sys.updateMesh()
	case st.Lifecycle != nil:
		if err := sys.lifecycle(*st.Lifecycle); err != nil {
			return err
		}
	}
	sys.catchUp()
	after()
	return nil
}

func (sys *system) lifecycle(l lifecycle) error {
	c, err := sys.cluster(l.Cluster)
	if err != nil {
		return err
	}
	switch l.Op {
	case "addCluster":
		sys.connect(c)
	case "removeCluster":
		sys.disconnect(c)
	case "replaceCluster":
		sys.replace(c)
	default:
		return fmt.Errorf("unknown lifecycle op %q", l.Op)
	}
	return nil
}

func (sys *system) updateMesh() {
	for _, c := range sys.clusters {
		if c.kube != nil {
			c.kube.UpdateMesh(sys.mesh(c))
		}
	}
	sys.catchUp()
	sys.updateEntries()
}

// updateEntries makes the registries of entries ask for networks again.
func (sys *system) updateEntries() {
	if sys.entries != nil {
		sys.entries.UpdateMesh(sys.serviceEntryMesh())
	}
	for _, c := range sys.clusters {
		if c.remote != nil {
			c.remote.UpdateMesh(sys.serviceEntryMesh())
		}
	}
}

// namespaceOfEntries gives a namespace of the config cluster to the registry of entries.
func (sys *system) namespaceOfEntries(c *cluster, d document) {
	if n, ok := d.object.(*corev1.Namespace); ok && sys.entries != nil && c == sys.clusters[0] {
		sys.entries.UpdateNamespace(serviceentry.Namespace{Name: n.Name, Labels: n.Labels, Annotations: n.Annotations})
	}
}

// applyOne writes a document to a cluster, and reports whether it changed
// anything.
func (sys *system) applyOne(c *cluster, d document) (bool, error) {
	old, exists := c.objects[d.objectRef]
	created := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(sys.objects) * time.Second)
	if !exists {
		sys.objects++
	}
	if d.object == nil {
		return true, sys.applyConfig(c, d, exists, created)
	}
	meta := d.object.(metav1.Object)
	switch {
	case d.created:
	case exists:
		meta.SetCreationTimestamp(old.object.(metav1.Object).GetCreationTimestamp())
	default:
		meta.SetCreationTimestamp(metav1.NewTime(created))
	}
	if exists && reflect.DeepEqual(old.object, d.object) {
		return false, nil
	}
	c.objects[d.objectRef] = d
	sys.namespaceOfEntries(c, d)
	if c.kube == nil {
		return true, nil
	}
	if visible(d.object) {
		c.kube.Put(d.object.DeepCopyObject())
	} else if exists && visible(old.object) {
		c.kube.Remove(old.object.DeepCopyObject())
	}
	if d.Kind == "Namespace" {
		c.kube.Drain()
		sys.updateEntries()
	}
	return true, nil
}

// applyConfig writes an object of Istio to the config store of a cluster.
func (sys *system) applyConfig(c *cluster, d document, exists bool, created time.Time) error {
	parsed := manifest.Parse(istio.Schemas(), d.text, manifest.Options{Lenient: true})
	if len(parsed) != 1 || parsed[0].Err != nil {
		return fmt.Errorf("%s cannot be read: %+v", d.objectRef, parsed)
	}
	config := parsed[0].Config
	c.objects[d.objectRef] = d
	if exists {
		stored := c.store.Get(config.GroupVersionKind, config.Name, config.Namespace)
		if config.CreationTimestamp.IsZero() && stored != nil {
			config.CreationTimestamp = stored.CreationTimestamp
		}
		_, err := c.store.Update(config)
		return err
	}
	if config.CreationTimestamp.IsZero() {
		config.CreationTimestamp = created
	}
	_, err := c.store.Create(config)
	return err
}

func (sys *system) delete(c *cluster, ref objectRef) error {
	d, exists := c.objects[ref]
	if !exists {
		return nil
	}
	delete(c.objects, ref)
	if ref.Kind == "Namespace" && sys.entries != nil && c == sys.clusters[0] {
		sys.entries.DeleteNamespace(ref.Name)
	}
	if d.object == nil {
		return c.store.Delete(kindOf(ref.Kind), ref.Name, ref.Namespace, nil)
	}
	if c.kube != nil && visible(d.object) {
		c.kube.Remove(d.object.DeepCopyObject())
	}
	if ref.Kind == "Namespace" && c.kube != nil {
		c.kube.Drain()
		sys.updateEntries()
	}
	return nil
}

func kindOf(name string) configstore.GroupVersionKind {
	for _, s := range istio.Schemas().All() {
		if s.GroupVersionKind.Kind == name {
			return s.GroupVersionKind
		}
	}
	return configstore.GroupVersionKind{Kind: name}
}
