// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// system is an API server of a scenario with a Converter: README.md of the corpus, section 2.
type system struct {
	converter *Converter
	// objects contains the documents, and read the objects that a Converter reads.
	objects map[objectRef]map[string]any
	read    map[objectRef]metav1.Object
	entries map[objectRef]*ServiceEntry
	created int

	pending []Change
	updates []Update // of this step

	// stale are the listeners in which only the kinds have changed: rule G1.
	stale map[listenerKey]bool
	// namesakes are the names that two routes of different kinds had at the same time: rule G22.
	namesakes map[Key]bool
}

func newSystem() *system {
	return &system{
		converter: NewConverter(), objects: map[objectRef]map[string]any{}, read: map[objectRef]metav1.Object{},
		entries: map[objectRef]*ServiceEntry{}, stale: map[listenerKey]bool{}, namesakes: map[Key]bool{},
	}
}

func text(doc map[string]any, path ...string) string {
	var at any = doc
	for _, name := range path {
		m, _ := at.(map[string]any)
		at = m[name]
	}
	s, _ := at.(string)
	return s
}

// apply stores a document.
func (s *system) apply(doc map[string]any) error {
	ref := objectRef{text(doc, "kind"), text(doc, "metadata", "namespace"), text(doc, "metadata", "name")}
	old := s.objects[ref]
	_, hasStatus := doc["status"]
	if old != nil && reflect.DeepEqual(old, doc) && !hasStatus {
		return nil
	}
	s.objects[ref] = doc
	created := metav1.NewTime(time.Date(2024, 1, 1, 0, 0, s.created, 0, time.UTC))
	if old == nil {
		s.created++
	}
	if ref.Kind == "ServiceEntry" {
		entry, err := serviceEntryOf(doc)
		if err != nil {
			return err
		}
		s.entries[ref] = entry
		s.pending = append(s.pending, Set(entry))
		return nil
	}
	object, err := newObject(ref.Kind)
	if err != nil || object == nil {
		return err
	}
	data, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, object); err != nil {
		return fmt.Errorf("%v: %w", ref, err)
	}
	s.remember(ref, object)
	if t := object.GetCreationTimestamp(); t.IsZero() {
		object.SetCreationTimestamp(created)
	}
	object.SetGeneration(1)
	before := s.read[ref]
	if before != nil {
		object.SetCreationTimestamp(before.GetCreationTimestamp())
		object.SetGeneration(before.GetGeneration())
		if !reflect.DeepEqual(old["spec"], doc["spec"]) {
			object.SetGeneration(before.GetGeneration() + 1)
		}
	}
	switch {
	case hasStatus || ref.Kind == "Service": // The status of a Service is that of its document.
	case before != nil:
		copyStatus(object, before)
	default:
		setPending(object)
	}
	s.put(ref, object)
	return nil
}

// remember records the history that the rules need.
func (s *system) remember(ref objectRef, object metav1.Object) {
	if ref.Kind == string(KindHTTPRoute) || ref.Kind == string(KindGRPCRoute) {
		other := ref
		if other.Kind = string(KindHTTPRoute); ref.Kind == other.Kind {
			other.Kind = string(KindGRPCRoute)
		}
		if s.read[other] != nil {
			s.namesakes[Key{ref.Namespace, ref.Name}] = true
		}
	}
	had := map[gatewayv1.SectionName]gatewayv1.Listener{}
	for _, l := range listenersIn(s.read[ref]) {
		had[l.Name] = l
	}
	for _, l := range listenersIn(object) {
		at := listenerKey{parentKey{Kind(ref.Kind), Key{ref.Namespace, ref.Name}}, string(l.Name)}
		was, ok := had[l.Name]
		if s.stale[at] = s.stale[at] && ok || ok && !reflect.DeepEqual(was.AllowedRoutes, l.AllowedRoutes); !ok {
			continue
		}
		if was.AllowedRoutes == nil || l.AllowedRoutes == nil {
			s.stale[at] = false
			continue
		}
		a, b := was.DeepCopy(), l.DeepCopy()
		a.AllowedRoutes.Kinds, b.AllowedRoutes.Kinds = nil, nil
		s.stale[at] = s.stale[at] && reflect.DeepEqual(a, b)
	}
}

// listenersIn returns the listeners of a Gateway or a ListenerSet.
func listenersIn(object metav1.Object) []gatewayv1.Listener {
	switch o := object.(type) {
	case *gatewayv1.Gateway:
		return o.Spec.Listeners
	case *gatewayv1.ListenerSet:
		var out []gatewayv1.Listener
		for _, l := range o.Spec.Listeners {
			out = append(out, gatewayv1.Listener(l))
		}
		return out
	}
	return nil
}

func (s *system) put(ref objectRef, object metav1.Object) {
	s.read[ref] = object
	s.pending = append(s.pending, setObject(object))
}

// copyStatus gives an object the status of another one of its kind.
func copyStatus(to, from metav1.Object) {
	status := reflect.ValueOf(to).Elem().FieldByName("Status")
	if status.IsValid() {
		status.Set(reflect.ValueOf(from).Elem().FieldByName("Status"))
	}
}

// setPending sets the CRD's initial status.
func setPending(object metav1.Object) {
	conditions := []metav1.Condition{
		{Type: accepted, Status: metav1.ConditionUnknown, Reason: "Pending"}, {Type: programmed, Status: metav1.ConditionUnknown, Reason: "Pending"},
	}
	switch o := object.(type) {
	case *gatewayv1.GatewayClass:
		o.Status.Conditions = conditions[:1]
	case *gatewayv1.Gateway:
		o.Status.Conditions = conditions
	case *gatewayv1.ListenerSet:
		o.Status.Conditions = conditions
	}
}

func (s *system) remove(ref objectRef) error {
	delete(s.objects, ref)
	delete(s.read, ref)
	delete(s.entries, ref)
	change, err := deleteObject(ref)
	s.pending = append(s.pending, change)
	return err
}

// settle converts the pending changes, and writes statuses until no status is pending.
func (s *system) settle() error {
	s.updates = nil
	for round := 0; len(s.pending) > 0; round++ {
		update := s.converter.Apply(s.pending...)
		s.pending = nil
		if round > 0 && len(update.Changes) > 0 {
			return fmt.Errorf("statuses that were written change configs: %v", update.Changes)
		}
		if round > 2 {
			return fmt.Errorf("statuses are never written: %v", update.Statuses)
		}
		s.updates = append(s.updates, update)
		for _, key := range update.Statuses {
			s.write(key, update.After.Status(key))
		}
	}
	return nil
}

// write stores the status of an object, as the writer of statuses does.
func (s *system) write(key ObjectKey, status Status) {
	ref := objectRef{string(key.Kind), key.Namespace, key.Name}
	object := s.read[ref]
	if status == nil || object == nil {
		return
	}
	next := object.(runtime.Object).DeepCopyObject().(metav1.Object)
	switch o := next.(type) {
	case *gatewayv1.GatewayClass:
		o.Status = *status.(*gatewayv1.GatewayClassStatus).DeepCopy()
	case *gatewayv1.Gateway:
		o.Status = *status.(*gatewayv1.GatewayStatus).DeepCopy()
	case *gatewayv1.ListenerSet:
		o.Status = *status.(*gatewayv1.ListenerSetStatus).DeepCopy()
	case *gatewayv1.HTTPRoute:
		o.Status.RouteStatus = *status.(*gatewayv1.RouteStatus).DeepCopy()
	case *gatewayv1.GRPCRoute:
		o.Status.RouteStatus = *status.(*gatewayv1.RouteStatus).DeepCopy()
	case *gatewayv1.TLSRoute:
		o.Status.RouteStatus = *status.(*gatewayv1.RouteStatus).DeepCopy()
	case *gatewayv1.TCPRoute:
		o.Status.RouteStatus = *status.(*gatewayv1.RouteStatus).DeepCopy()
	case *gatewayv1.BackendTLSPolicy:
		o.Status = *status.(*gatewayv1.PolicyStatus).DeepCopy()
	}
	stamp(reflect.ValueOf(next).Elem().FieldByName("Status"))
	if !apiequality.Semantic.DeepEqual(next, object) {
		s.put(ref, next)
	}
}

// stamp sets the missing times of conditions.
func stamp(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		if c, ok := reflect.TypeAssert[*metav1.Condition](v.Addr()); ok {
			if c.LastTransitionTime.IsZero() {
				c.LastTransitionTime = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
			}
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				stamp(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			stamp(v.Index(i))
		}
	default:
	}
}

// fresh returns the snapshot of a new Converter with the same objects.
func (s *system) fresh() *Snapshot {
	var changes []Change
	for _, ref := range slices.SortedFunc(maps.Keys(s.read), func(a, b objectRef) int {
		return ObjectKey{Kind(a.Kind), Key{a.Namespace, a.Name}}.Compare(ObjectKey{Kind(b.Kind), Key{b.Namespace, b.Name}})
	}) {
		changes = append(changes, setObject(s.read[ref]))
	}
	for _, entry := range s.entries {
		changes = append(changes, Set(entry))
	}
	return NewConverter().Apply(changes...).After
}

// step executes a step.
func (s *system) step(st step) error {
	switch {
	case st.Apply != nil:
		return s.applyAll(*st.Apply)
	case st.Delete != nil:
		if err := s.remove(*st.Delete); err != nil {
			return err
		}
	}
	return s.settle()
}

func (s *system) applyAll(text string) error {
	docs, err := documents(text)
	if err != nil {
		return err
	}
	for _, doc := range docs {
		if err := s.apply(doc); err != nil {
			return err
		}
	}
	return s.settle()
}
