// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/registry"
)

// The types of the conditions that a ServiceReporter reports.
const (
	// ConditionServices tells whether services were created from the object. The message contains
	// their number and their hosts.
	ConditionServices = "ServicesMade"
	// ConditionConflicted tells whether another source defines a host of the object, too: see
	// aggregate.Conflict. The message names the sources.
	ConditionConflicted = "Conflicted"
)

const (
	// reportInterval is the minimum time between two reports.
	reportInterval = time.Second
	// hostsInMessage is the maximum number of hosts in a message.
	hostsInMessage = 10
)

// ServiceReporter reports the outcome of the objects of one kind, ServiceEntries, to a
// StatusWriter: ConditionServices and ConditionConflicted. Create it with NewServiceReporter.
//
//	statuses, err := kube.NewStatusWriter(cache, restConfig, kube.StatusOptions{...})
//	...
//	reporter := kube.NewServiceReporter(statuses, istio.ServiceEntry, registries)
//	go statuses.Run(stop)
//	go reporter.Run(stop)
//
// After services or objects of the kind have changed, it examines all of them, at most once a
// second. Changes of endpoints and of statuses cost nothing.
type ServiceReporter struct {
	writer     *StatusWriter
	kind       configstore.GroupVersionKind
	registries *aggregate.Controller
	ran        atomic.Bool
}

// NewServiceReporter returns a reporter for the objects of a kind in the writer's cache. It
// identifies the object of a service of the provider registry.External by the service's namespace
// and ObjectName.
func NewServiceReporter(writer *StatusWriter, kind configstore.GroupVersionKind, registries *aggregate.Controller) *ServiceReporter {
	return &ServiceReporter{writer: writer, kind: kind, registries: registries}
}

// Run reports once the cache and the registries have synced, until stop is closed. The cache, the
// registries and the writer must run, too. A second call panics.
func (r *ServiceReporter) Run(stop <-chan struct{}) {
	if r.ran.Swap(true) {
		panic("kube: ServiceReporter.Run was called twice")
	}
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // The life of Run.
	var reporting sync.WaitGroup
	reporting.Go(func() { r.run(ctx) })
	<-stop
	cancel()
	reporting.Wait()
}

func (r *ServiceReporter) run(ctx context.Context) {
	if configstore.WaitForSync(ctx, r.writer.cache, r.registries) != nil {
		return // stopped before the sync
	}
	changed := make(chan struct{}, 1)
	notify := func() {
		select {
		case changed <- struct{}{}:
		default: // A report is pending already.
		}
	}
	defer r.registries.SubscribeServices(func(_, _ *registry.Service, _ registry.Event) { notify() })()
	objects, cancel := r.writer.cache.Subscribe([]configstore.GroupVersionKind{r.kind}, func(changes []configstore.Change) {
		if slices.ContainsFunc(changes, isOfContent) {
			notify()
		}
	})
	defer cancel()
	if len(objects) > 0 {
		notify()
	}
	for again := time.NewTimer(0); ; again.Reset(reportInterval) {
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
		var err error
		p := guard.Call(func() { err = r.report(ctx) })
		if p.Log(r.writer.writer.Logger, "service reporter"); p != nil {
			notify() // Retry, because the changes were not reported.
		}
		if err != nil && ctx.Err() == nil {
			r.writer.writer.Logger.Error("services are not reported any more", slog.Any("error", err))
			return
		}
	}
}

// isOfContent reports whether a change concerns more than the metadata and the status, which the
// writer changes itself.
func isOfContent(c configstore.Change) bool {
	return c.Old == nil || c.Old.Generation != c.Curr.Generation || c.Old.UID != c.Curr.UID
}

// outcome is the result of one object.
type outcome struct {
	hosts     []string
	conflicts []string
}

// report examines all objects and services. It waits until the registries have processed the
// objects, because a new object would otherwise appear to have no services.
func (r *ServiceReporter) report(ctx context.Context) error {
	configs := r.writer.cache.List(r.kind, configstore.NamespaceAll)
	if err := errors.Join(r.writer.cache.Flush(ctx), r.registries.Flush(ctx)); err != nil {
		return err
	}
	outcomes := r.outcomes()
	for _, c := range configs {
		o := outcomes[objectKey{c.Namespace, c.Name}]
		r.writer.Report(c.Key(), o.services(), o.conflicted())
	}
	return nil
}

func (r *ServiceReporter) outcomes() map[objectKey]outcome {
	outcomes := map[objectKey]outcome{}
	change := func(s *registry.Service, change func(*outcome)) {
		if a := s.Attributes; a.Provider == registry.External {
			key := objectKey{a.Namespace, a.ObjectName}
			o := outcomes[key]
			change(&o)
			outcomes[key] = o
		}
	}
	for _, s := range r.registries.Services() {
		change(s, func(o *outcome) { o.hosts = append(o.hosts, string(s.Hostname)) })
	}
	for _, c := range r.registries.Conflicts() {
		for _, s := range c.Services {
			change(s, func(o *outcome) { o.conflicts = append(o.conflicts, c.String()) })
		}
	}
	return outcomes
}

// services returns the condition with the number of hosts. A host with several addresses has a
// service for each of them, and is counted once.
func (o outcome) services() Condition {
	hosts := slices.Compact(slices.Sorted(slices.Values(o.hosts)))
	switch n := len(hosts); n {
	case 0:
		return Condition{Type: ConditionServices, Reason: "NoServices", Message: "no service was created from it"}
	case 1:
		return Condition{Type: ConditionServices, True: true, Reason: "Made", Message: "1 service: " + hosts[0]}
	default:
		return Condition{Type: ConditionServices, True: true, Reason: "Made", Message: fmt.Sprintf("%d services: %s", n, enumerate(hosts, ", "))}
	}
}

func (o outcome) conflicted() Condition {
	if len(o.conflicts) == 0 {
		return Condition{Type: ConditionConflicted, Reason: "NoConflicts"}
	}
	conflicts := slices.Compact(slices.Sorted(slices.Values(o.conflicts)))
	return Condition{Type: ConditionConflicted, True: true, Reason: "DefinedMoreThanOnce", Message: enumerate(conflicts, "; ")}
}

// enumerate joins the first hostsInMessage items.
func enumerate(items []string, separator string) string {
	more := len(items) - hostsInMessage
	if more <= 0 {
		return strings.Join(items, separator)
	}
	return fmt.Sprintf("%s and %d more", strings.Join(items[:hostsInMessage], separator), more)
}
