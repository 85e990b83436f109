// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"errors"
	"slices"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/memory"
)

// key identifies a service.
type key struct {
	hostname  registry.Hostname
	namespace string
}

func keyOf(s *registry.Service) key { return key{s.Hostname, s.Attributes.Namespace} }

// content is the registry's content according to a list. The zero value is empty.
type content struct {
	services  map[key]memory.Definition
	endpoints int
}

// put adds a service.
func (c *content) put(k key, d memory.Definition) {
	c.services[k] = d
	c.endpoints += len(d.Endpoints)
}

// definitions returns all services in the order of registry.CompareServices.
func (c *content) definitions() []memory.Definition {
	out := make([]memory.Definition, 0, len(c.services))
	for _, d := range c.services {
		out = append(out, d)
	}
	slices.SortFunc(out, func(d, e memory.Definition) int { return registry.CompareServices(d.Service, e.Service) })
	return out
}

// errTwice is the defect of a record whose service another record also has.
var errTwice = errors.New("the service is there twice")

// collect returns the content according to a list. A service whose record has a defect keeps its
// last good state, if there is one. Of two records of a service the first is used.
func (b *Bridge) collect(records []Record) (content, []*RecordError) {
	next := content{services: make(map[key]memory.Definition, len(records))}
	var defects []*RecordError
	seen := make(map[key]struct{}, len(records))
	for _, r := range records {
		d := memory.Definition{Service: r.Service, Endpoints: r.Endpoints}
		if r.Service == nil {
			defects = append(defects, newRecordError(key{}, d.Check()))
			continue
		}
		k := keyOf(r.Service)
		if _, ok := seen[k]; ok {
			defects = append(defects, newRecordError(k, errTwice))
			continue
		}
		seen[k] = struct{}{}
		err := r.Err
		if err == nil {
			err = d.Check()
		}
		if err == nil {
			next.put(k, d)
			continue
		}
		defect := newRecordError(k, err)
		if d, defect.Kept = b.shown.services[k]; defect.Kept {
			next.put(k, d)
		}
		defects = append(defects, defect)
	}
	slices.SortStableFunc(defects, (*RecordError).compare)
	return next, defects
}
