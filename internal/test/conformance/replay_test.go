// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/registry"
)

// apply creates or updates the documents one at a time.
func (sys *system) apply(registryID, text string) ([]result, error) {
	docs, err := documents(text)
	if err != nil {
		return nil, err
	}
	store, ok := sys.stores[registryID]
	if !ok {
		return nil, fmt.Errorf("registry %q has no store", registryID)
	}
	var out []result
	for i, doc := range docs {
		sys.at(i)
		c := doc.config
		stored, created := "", ""
		current := store.Get(c.GroupVersionKind, c.Name, c.Namespace)
		r := result{Op: opCreate, Object: doc.ref.String()}
		if current != nil {
			r.Op, stored = opUpdate, viewTime(current.CreationTimestamp, sys.started)
			c.CreationTimestamp = current.CreationTimestamp
		}
		if created = sys.created.next(doc, stored); created != timeNow && created != timeZero {
			if c.CreationTimestamp, err = time.Parse(time.RFC3339, created); err != nil {
				return nil, err
			}
		}
		c.ResourceVersion = ""
		switch {
		case doc.refused != nil:
			err = doc.refused
		case current == nil:
			_, err = store.Create(c)
		default:
			_, err = store.Update(c)
		}
		r.Outcome, r.Messages = outcome(err)
		out = append(out, r)
		sys.catchUp()
	}
	return out, nil
}

// outcome says in the words of the files how an operation ended.
func outcome(err error) (word string, messages []string) {
	switch {
	case err == nil:
		return outcomeOK, nil
	case errors.Is(err, configstore.ErrAlreadyExists):
		word = outcomeExists
	case errors.Is(err, configstore.ErrConflict):
		word = outcomeConflict
	case errors.Is(err, configstore.ErrNotFound):
		word = outcomeNotFound
	case errors.Is(err, configstore.ErrUnknownKind):
		word = outcomeUnknownType
	default:
		word = outcomeInvalid
	}
	return word, strings.Split(err.Error(), "\n")
}

// at says which document of a step comes next.
func (sys *system) at(doc int) {
	sys.mu.Lock()
	sys.doc = doc
	sys.mu.Unlock()
	sys.recorder.at(doc)
}

// step runs a step. recorded is the step in the golden file, which determines the parts to show and
// the names of versions.
func (sys *system) step(st step, recorded observation) (observation, error) {
	sys.at(0)
	results, err := sys.run(st, recorded.Results)
	if err != nil {
		return observation{}, err
	}
	sys.catchUp()
	sys.symbols.bindEvents(recorded.EventHandlerCalls, sys.version)
	return sys.observe(results), nil
}

func (sys *system) run(st step, recorded []result) ([]result, error) {
	if sys.main == nil && st.Apply == nil && st.Delete == nil && st.Store == nil {
		return nil, errors.New("there is nothing but a store")
	}
	switch {
	case st.Apply != nil:
		return sys.apply(st.Registry, *st.Apply)
	case st.Delete != nil:
		return sys.delete(st.Registry, *st.Delete)
	case st.Workload != nil:
		sys.main.WorkloadInstanceHandler(st.Workload.workloadInstance(), st.Workload.event())
	case st.Namespace != nil && st.Namespace.Delete:
		sys.main.DeleteNamespace(st.Namespace.Name)
	case st.Namespace != nil:
		sys.main.UpdateNamespace(st.Namespace.registryNamespace())
	case st.MeshConfig != nil:
		mesh, err := meshOf(*st.MeshConfig)
		if err != nil {
			return nil, err
		}
		sys.main.UpdateMesh(mesh)
		for _, remote := range sys.remotes {
			remote.UpdateMesh(mesh)
		}
	case st.ResyncEDS != nil:
		sys.main.ResyncEDS()
	case st.Store != nil:
		return sys.storeStep(*st.Store, recorded)
	case st.Aggregate != nil:
		return sys.aggregateStep(*st.Aggregate)
	}
	return nil, nil
}

func (sys *system) delete(registryID string, ref objectRef) ([]result, error) {
	store, ok := sys.stores[registryID]
	if !ok {
		return nil, fmt.Errorf("registry %q has no store", registryID)
	}
	err := store.Delete(kindOf(ref.Kind), ref.Name, ref.Namespace, nil)
	r := result{Op: opDelete, Object: ref.String()}
	r.Outcome, r.Messages = outcome(err)
	return []result{r}, nil
}

// storeStep calls the store directly.
func (sys *system) storeStep(st storeStep, recorded []result) ([]result, error) {
	calls, err := storeCalls(st)
	if err != nil {
		return nil, err
	}
	var out []result
	for i, c := range calls {
		sys.at(i)
		var rec result
		if i < len(recorded) {
			rec = recorded[i]
		}
		r := sys.storeCall(c, rec)
		sys.symbols.bindResult(rec, sys.version)
		out = append(out, r)
		sys.catchUp()
	}
	return out, nil
}

func (sys *system) storeCall(c storeCall, rec result) result {
	store, kind := sys.stores[""], kindOf(c.ref.Kind)
	r := result{Op: c.op, Object: rec.Object}
	version := sys.symbols.resolve(c.version)
	config := c.doc.config
	config.ResourceVersion = version
	err := c.doc.refused
	switch c.op {
	case opGet:
		r.Outcome = outcomeNotFound
		if found := store.Get(kind, c.ref.Name, c.ref.Namespace); found != nil {
			r.Outcome, r.Item = outcomeOK, sys.viewConfig(*found, rec.Item)
		} else if !store.Schemas().Has(kind) && rec.Outcome == outcomeUnknownType {
			r.Outcome = outcomeUnknownType
		}
		return r
	case opList:
		r.Outcome = outcomeOK
		for i, found := range store.List(kind, c.ref.Namespace) {
			r.Items = append(r.Items, *sys.viewConfig(*found, at(rec.Items, i)))
		}
		if !store.Schemas().Has(kind) && rec.Outcome == outcomeUnknownType {
			r.Outcome = outcomeUnknownType
		}
		return r
	case opDelete:
		var given *string
		if version != "" {
			given = &version
		}
		err = store.Delete(kind, c.ref.Name, c.ref.Namespace, given)
	case opCreate:
		if err == nil {
			r.ResourceVersion, err = store.Create(config)
		}
	case opUpdate:
		if err == nil {
			r.ResourceVersion, err = store.Update(config)
		}
	case opUpdateStatus:
		if err == nil {
			r.ResourceVersion, err = store.UpdateStatus(config)
		}
	}
	if err != nil {
		r.ResourceVersion = ""
	}
	r.Outcome, r.Messages = outcome(err)
	return r
}

// version returns the version of an object of the main store, "" if there is none.
func (sys *system) version(k configstore.ConfigKey) string {
	if found := sys.stores[""].Get(k.Kind, k.Name, k.Namespace); found != nil {
		return found.ResourceVersion
	}
	return ""
}

// aggregateStep changes the aggregate or one of its static registries.
func (sys *system) aggregateStep(st aggregateStep) ([]result, error) {
	instance, static := sys.instance(st.ID), sys.statics[st.ID]
	switch {
	case sys.aggregate == nil:
		return nil, errors.New("there is no aggregate")
	case st.ID != "" && instance == nil:
		return nil, fmt.Errorf("there is no registry %q", st.ID)
	case static.Registry == nil && (st.Op == opAddService || st.Op == opRemoveService):
		return nil, fmt.Errorf("registry %q is not static", st.ID)
	}
	switch st.Op {
	case opAddRegistry:
		sys.aggregate.AddRegistry(given(instance))
	case opDeleteRegistry:
		sys.aggregate.DeleteRegistry(registry.ClusterID(st.Cluster), registry.ProviderID(st.Provider))
	case opUpdateRegistry:
		sys.aggregate.UpdateRegistry(given(instance))
	case opDeleteRegistryIfCurrent:
		word := outcomeNotFound
		if sys.aggregate.DeleteRegistryIfCurrent(instance) {
			word = outcomeOK
		}
		return []result{{Op: st.Op, Object: st.ID, Outcome: word}}, nil
	case opAddService:
		return nil, static.SetService(st.Service.registryService(string(static.Provider())))
	case opRemoveService:
		return nil, sys.removeService(static, registry.Hostname(st.Hostname))
	case opUnregisterHandlers:
		sys.aggregate.UnRegisterHandlersForCluster(registry.ClusterID(st.Cluster))
	default:
		return nil, fmt.Errorf("aggregate operation %q", st.Op)
	}
	return nil, nil
}

// removeService removes all services of a host name.
func (sys *system) removeService(r interface {
	registry.ServiceDiscovery
	RemoveService(hostname registry.Hostname, namespace string) error
}, hostname registry.Hostname,
) error {
	for s := r.GetService(hostname); s != nil; s = r.GetService(hostname) {
		if err := r.RemoveService(hostname, s.Attributes.Namespace); err != nil {
			return err
		}
	}
	return nil
}

// instance returns an additional registry, or nil.
func (sys *system) instance(id string) registry.Instance {
	if r, ok := sys.remotes[id]; ok {
		return r
	}
	if r, ok := sys.statics[id]; ok {
		return r
	}
	return nil
}
