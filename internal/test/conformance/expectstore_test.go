// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"encoding/json"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pilotkit/pilotkit/configstore"
)

// The values of storeStep.Op.
const (
	opCreate       = "create"
	opUpdate       = "update"
	opUpdateStatus = "updateStatus"
	opDelete       = "delete"
	opGet          = "get"
	opList         = "list"
)

// store runs a step of op store on both models: the recorded one must reproduce the recording, ours
// gives the expected result.
func (x *expectation) store(e *expected, st storeStep) {
	calls, err := storeCalls(st)
	if err != nil {
		e.problems = append(e.problems, err.Error())
		return
	}
	e.Results = slices.Clone(e.rec.Results)
	e.EventHandlerCalls = nil
	var recorded []result
	var recordedEvents []eventHandlerCall
	for i, c := range calls {
		if i >= len(e.rec.Results) {
			e.problems = append(e.problems, fmt.Sprintf("recorded results: %d for %d calls", len(e.rec.Results), len(calls)))
			return
		}
		rec := e.rec.Results[i]
		theirs, events := x.call(x.recorded[""], c, rec, x.recordedVersion)
		recorded, recordedEvents = append(recorded, theirs), append(recordedEvents, events...)
		ours, events := x.call(x.ours[""], c, rec, x.symbols.resolve)
		e.Results[i] = ours
		e.EventHandlerCalls = append(e.EventHandlerCalls, events...)
		x.symbols.bindResult(rec, x.ourVersion)
		x.notifyWorkloads(e, "", i, accepted(c.doc, refusedAs(rec)))
	}
	x.checkModel(e, recorded, recordedEvents)
	x.symbols.bindEvents(e.rec.EventHandlerCalls, x.ourVersion)
}

// storeCall is one operation of a store step.
type storeCall struct {
	op      string
	ref     objectRef
	doc     document
	version string
}

// storeCalls returns the operations: one for each document, or one.
func storeCalls(st storeStep) ([]storeCall, error) {
	version := ""
	if st.ResourceVersion != nil {
		version = *st.ResourceVersion
	}
	if st.Config == "" {
		ref := objectRef{Kind: st.Kind, Namespace: st.Namespace, Name: st.Name}
		return []storeCall{{op: st.Op, ref: ref, version: version}}, nil
	}
	docs, err := documents(st.Config)
	if err != nil {
		return nil, err
	}
	var out []storeCall
	for _, d := range docs {
		c := storeCall{op: st.Op, ref: d.ref, doc: d, version: d.config.ResourceVersion}
		if st.ResourceVersion != nil {
			c.version = version
		}
		out = append(out, c)
	}
	return out, nil
}

// refusedAs returns the recorded outcome if the object or its kind was refused.
func refusedAs(rec result) string {
	if rec.Outcome == outcomeInvalid || rec.Outcome == outcomeUnknownType {
		return rec.Outcome
	}
	return ""
}

// call runs one operation on a model.
func (x *expectation) call(m *storeModel, c storeCall, rec result, version func(string) string) (result, []eventHandlerCall) {
	out := result{Op: rec.Op, Object: rec.Object}
	kind := kindOf(c.ref.Kind)
	k := configstore.ConfigKey{Kind: kind, Namespace: c.ref.Namespace, Name: c.ref.Name}
	var r modelResult
	switch c.op {
	case opGet:
		out.Outcome = outcomeNotFound
		if o, ok := m.objects[k]; ok {
			out.Outcome = outcomeOK
			out.Item = o.view(rec.Item)
		}
		if rec.Outcome == outcomeUnknownType {
			out.Outcome = outcomeUnknownType
		}
		return out, nil
	case opList:
		out.Outcome = rec.Outcome
		for i, o := range m.list(kind, c.ref.Namespace) {
			out.Items = append(out.Items, *o.view(at(rec.Items, i)))
		}
		return out, nil
	case opDelete:
		if rec.Outcome == outcomeUnknownType {
			r = modelResult{outcome: rec.Outcome}
			break
		}
		r = m.remove(k, version(c.version))
	default:
		r = m.write(modelWrite{
			op: c.op, config: c.doc.config, created: c.doc.created(),
			version: version(c.version), refused: refusedAs(rec),
		})
	}
	out.Outcome, out.ResourceVersion = r.outcome, r.version
	return out, x.events(r)
}

// events returns the calls of the store's event handlers.
func (x *expectation) events(r modelResult) []eventHandlerCall {
	if r.event == "" || !slices.Contains(x.scenario.Options.EventHandlers, r.curr.config.GroupVersionKind.Kind) {
		return nil
	}
	c := eventHandlerCall{Kind: r.curr.config.GroupVersionKind.Kind, Event: r.event, New: r.curr.view(nil)}
	if r.old != nil {
		c.Old = r.old.view(nil)
	}
	return []eventHandlerCall{c}
}

// at returns a pointer to an element, or nil.
func at(items []object, i int) *object {
	if i >= len(items) {
		return nil
	}
	return &items[i]
}

// view returns the object as the files write it, with the parts that shown has.
func (o modelObject) view(shown *object) *object {
	out := viewOf(o.config, shown)
	out.ResourceVersion, out.CreationTimestamp = o.version, o.created
	return out
}

// viewOf returns a config in the form of the files, without version and time. Only the fields that
// shown has are filled, because files omit the others.
func viewOf(c configstore.Config, shown *object) *object {
	out := &object{Kind: c.GroupVersionKind.Kind, Namespace: c.Namespace, Name: c.Name}
	if shown == nil {
		return out
	}
	if shown.Labels != nil {
		out.Labels = c.Labels
	}
	if shown.Annotations != nil {
		out.Annotations = c.Annotations
	}
	if shown.Spec != nil {
		out.Spec = messageJSON(c.Spec)
	}
	if shown.Status != nil {
		out.Status = messageJSON(c.Status)
	}
	return out
}

// messageJSON returns a message as decoded JSON.
func messageJSON(m proto.Message) map[string]any {
	out := map[string]any{}
	if m == nil {
		return out
	}
	data, err := protojson.Marshal(m)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		out["error"] = err.Error()
	}
	return out
}

// recordedVersion resolves a version of a scenario for the recorded model: what
// it is called there.
func (x *expectation) recordedVersion(version string) string {
	if name, ok := x.recordedNames.names[version]; ok {
		return x.modelNames.versions[name]
	}
	return version
}

// ourVersion returns the version of an object in our model, "" if it has none.
func (x *expectation) ourVersion(k configstore.ConfigKey) string {
	return x.ours[""].objects[k].version
}

// checkModel reports the deviations of the recorded model from the recording.
func (x *expectation) checkModel(e *expected, results []result, events []eventHandlerCall) {
	rec := named(&x.recordedNames, e.rec.Results, e.rec.EventHandlerCalls)
	model := named(&x.modelNames, results, events)
	if diff := cmp.Diff(rec, model, cmpopts.EquateEmpty()); diff != "" {
		e.problems = append(e.problems, "the recorded rules do not give the recording (-recorded +rules):\n"+diff)
	}
}
