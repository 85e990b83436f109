// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore/istio"
	storememory "github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/kube"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// system is the library, put together as a scenario asks for.
type system struct {
	scenario *scenario
	recorder *recorder
	updater  xdsupdate.XDSUpdater
	registry *aggregate.Controller
	clusters []*cluster
	// entries is the ServiceEntry registry, or nil.
	entries  *serviceentry.Controller
	networks []kube.Network
	// objects is the number of created objects.
	objects int

	workloads    []workloadCall
	services     []serviceCall
	gatewayCalls int
}

// cluster is an API server, and the registries that read it if it is connected.
type cluster struct {
	id      registry.ClusterID
	mesh    meshConfig
	objects map[objectRef]document
	store   *storememory.Controller
	kube    *kube.Controller
	remote  *serviceentry.Controller
}

type workloadCall struct {
	registry string
	workload *registry.WorkloadInstance
	event    registry.Event
}

type serviceCall struct {
	cluster  registry.ClusterID
	hostname registry.Hostname
	event    registry.Event
}

func newSystem(s *scenario, deltas bool) (*system, error) {
	sys := &system{scenario: s, recorder: &recorder{index: xdsupdate.NewEndpointIndex()}}
	sys.updater = sys.recorder
	if deltas {
		sys.updater = deltaRecorder{sys.recorder}
	}
	sys.registry = aggregate.NewController(aggregate.Options{Updater: sys.updater})
	sys.registry.AppendNetworkGatewayHandler(func() { sys.gatewayCalls++ })
	specs := append([]clusterSpec{{ID: s.Options.ClusterID, Initial: s.Initial, MeshConfig: s.Options.MeshConfig}}, s.Clusters...)
	for _, spec := range specs {
		c := &cluster{
			id: registry.ClusterID(spec.ID), objects: map[objectRef]document{},
			store: storememory.NewController(storememory.Make(istio.Schemas())),
		}
		sys.clusters = append(sys.clusters, c)
		var err error
		if c.mesh, err = parseMeshConfig(spec.MeshConfig); err != nil {
			return nil, err
		}
		docs, err := documents(spec.Initial)
		if err != nil {
			return nil, err
		}
		for _, d := range docs {
			if _, err := sys.applyOne(c, d); err != nil {
				return nil, err
			}
		}
	}
	var err error
	sys.networks, err = parseNetworks(s.Options.MeshNetworks)
	return sys, err
}

// start connects the clusters that are there from the start.
func (sys *system) start() {
	if sys.scenario.Options.ServiceEntries {
		c := sys.clusters[0]
		sys.entries = serviceentry.New(c.store, sys.updater, serviceentry.Options{
			ClusterID: c.id, Mesh: sys.serviceEntryMesh(),
		})
		for _, d := range c.objects {
			sys.namespaceOfEntries(c, d)
		}
	}
	sys.connect(sys.clusters[0])
	for i, c := range sys.clusters[1:] {
		if !sys.scenario.Clusters[i].Deferred {
			sys.connect(c)
		}
	}
	sys.catchUp()
}

// networkOf asks the Kubernetes registry of a cluster.
func networkOf(c *cluster) func(string, registry.Labels) string {
	return func(address string, labels registry.Labels) string {
		if c.kube == nil {
			return ""
		}
		return c.kube.NetworkOf(address, labels)
	}
}

// serviceEntryMesh returns the mesh of the config cluster, which all registries of entries have.
func (sys *system) serviceEntryMesh() serviceentry.Mesh {
	return serviceentry.Mesh{TrustDomain: sys.mesh(sys.clusters[0]).TrustDomain}
}

func (sys *system) mesh(c *cluster) kube.Mesh {
	m := kube.Mesh{
		TrustDomain: c.mesh.TrustDomain, DiscoverySelectors: sys.clusters[0].mesh.DiscoverySelectors, Networks: sys.networks,
	}
	if m.TrustDomain == "" {
		m.TrustDomain = sys.clusters[0].mesh.TrustDomain
	}
	return m
}

// makeKube creates a registry of a cluster, filled with the objects of the API server.
func (sys *system) makeKube(c *cluster, updater xdsupdate.XDSUpdater) *kube.Controller {
	o := sys.scenario.Options
	k := kube.New(nil, updater, kube.Options{
		ClusterID: c.id, DomainSuffix: o.DomainSuffix, SystemNamespace: o.SystemNamespace, Mesh: sys.mesh(c),
		DualStack: o.Features.DualStack, FindProxiesByAddress: o.Features.ProxyFindPodByIP,
	})
	for _, d := range c.objects {
		if visible(d.object) {
			k.Put(d.object.DeepCopyObject())
		}
	}
	k.AppendServiceHandler(func(_, curr *registry.Service, e registry.Event) {
		sys.services = append(sys.services, serviceCall{c.id, curr.Hostname, e})
	})
	k.AppendWorkloadHandler(func(w *registry.WorkloadInstance, e registry.Event) {
		sys.workloads = append(sys.workloads, workloadCall{"Kubernetes/" + string(c.id), w, e})
	})
	if sys.entries != nil {
		k.AppendWorkloadHandler(sys.entries.WorkloadInstanceHandler)
	}
	return k
}

// visible reports whether a watch shows an object: pods that have failed are left
// out.
func visible(o runtime.Object) bool {
	if o == nil {
		return false
	}
	p, isPod := o.(*corev1.Pod)
	_, legacy := o.(*corev1.Endpoints) //nolint:staticcheck // must not matter
	return !legacy && (!isPod || p.Status.Phase != corev1.PodFailed)
}

// connect adds the registries of a cluster.
func (sys *system) connect(c *cluster) {
	sys.registry.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
		c.kube = sys.makeKube(c, updater)
		return c.kube
	})
	sys.connectEntries(c)
}

// connectEntries adds the registry of the WorkloadEntries of a cluster.
func (sys *system) connectEntries(c *cluster) {
	switch {
	case sys.entries == nil:
		return
	case c == sys.clusters[0]:
		sys.registry.AddRegistry(func(xdsupdate.XDSUpdater) registry.Instance { return sys.entries })
		sys.watchEntries(c, sys.entries)
	default:
		sys.registry.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
			c.remote = serviceentry.New(c.store, updater, serviceentry.Options{
				ClusterID: c.id, WorkloadEntriesOnly: true, Mesh: sys.serviceEntryMesh(), NetworkOf: networkOf(c),
			})
			return c.remote
		})
		sys.watchEntries(c, c.remote)
		c.remote.AppendWorkloadHandler(sys.entries.WorkloadInstanceHandler)
	}
}

func (sys *system) watchEntries(c *cluster, from *serviceentry.Controller) {
	from.AppendWorkloadHandler(func(w *registry.WorkloadInstance, e registry.Event) {
		sys.workloads = append(sys.workloads, workloadCall{"External/" + string(c.id), w, e})
	})
	from.AppendWorkloadHandler(func(w *registry.WorkloadInstance, e registry.Event) {
		c.kube.WorkloadInstanceHandler(w, e)
	})
}

// disconnect removes the registries of a cluster.
func (sys *system) disconnect(c *cluster) {
	former := c.kube
	defer former.Drain() // removes its content
	sys.registry.DeleteRegistryIfCurrent(former)
	if c.remote != nil {
		sys.registry.DeleteRegistryIfCurrent(c.remote)
		stopped := make(chan struct{})
		close(stopped)
		c.remote.Run(stopped)
	}
	c.kube, c.remote = nil, nil
	sys.restarted(c)
	sys.pushCluster()
}

// restarted prepares the handlers of a cluster for another registry: they start with an empty
// state.
func (sys *system) restarted(c *cluster) {
	sys.workloads = append(sys.workloads, workloadCall{registry: "Kubernetes/" + string(c.id)})
}

// pushCluster requests the push that a host makes when a cluster was added or removed.
func (sys *system) pushCluster() {
	sys.updater.ConfigUpdate(&xdsupdate.PushRequest{
		Full: true, Forced: true, Reason: map[xdsupdate.TriggerReason]int{xdsupdate.ReasonCluster: 1},
	})
}

// replace puts a new registry in the place of that of a cluster.
func (sys *system) replace(c *cluster) {
	sys.restarted(c)
	remote, former := c.remote, c.kube
	sys.registry.UpdateRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
		k := sys.makeKube(c, updater)
		k.Drain()
		c.kube = k
		return k
	})
	former.Drain() // removes its content
	for _, from := range []*serviceentry.Controller{remote, sys.entries} {
		if from != nil && from.Cluster() == c.id {
			from.AppendWorkloadHandler(c.kube.WorkloadInstanceHandler)
		}
	}
	sys.catchUp()
	sys.pushCluster()
}

// catchUp completes all effects of a change. Handlers of one registry may affect another one, so it
// makes several rounds.
func (sys *system) catchUp() {
	for range 4 {
		for _, c := range sys.clusters {
			c.store.Drain()
			if c.kube != nil {
				c.kube.Drain()
			}
		}
		sys.registry.Drain()
	}
}

func (sys *system) cluster(id string) (*cluster, error) {
	if id == "" {
		return sys.clusters[0], nil
	}
	for _, c := range sys.clusters {
		if string(c.id) == id {
			return c, nil
		}
	}
	return nil, fmt.Errorf("no cluster %q", id)
}

// number is a number as recordings have them.
func number(n int64) json.Number { return json.Number(fmt.Sprint(n)) }
