// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

// state is the compared state: objects by an identity that does not depend on the names of configs,
// each in a canonical form.
type state struct {
	gateways, virtualServices, destinationRules, statuses map[string]map[string]any
}

// asMap converts a value by its JSON.
func asMap(v any) map[string]any {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	var out map[string]any
	if err := json.Unmarshal(data, &out); err != nil {
		panic(err)
	}
	return out
}

// recorded returns the state of a recording.
func (o *observation) state() state {
	clone := func(list []map[string]any) []map[string]any {
		var out []map[string]any
		for _, m := range list {
			out = append(out, asMap(m))
		}
		return out
	}
	return canonicalState(clone(o.Gateways.list), clone(o.VirtualServices.list), clone(o.DestRules.list), clone(o.Status.list))
}

// state returns the present state.
func (s *system) state() state { return s.observe().state() }

// observe returns the present state in the form of a recording.
func (s *system) observe() *observation {
	snapshot := s.converter.Snapshot()
	list := func(kind configstore.GroupVersionKind) []map[string]any {
		var out []map[string]any
		for _, c := range snapshot.Configs(kind) {
			data, err := protojson.Marshal(c.Spec)
			if err != nil {
				panic(err)
			}
			m := asMap(struct {
				Namespace   string            `json:"namespace"`
				Name        string            `json:"name"`
				Annotations map[string]string `json:"annotations"`
				Spec        json.RawMessage   `json:"spec"`
			}{c.Namespace, c.Name, c.Annotations, data})
			if !c.CreationTimestamp.IsZero() {
				m["creationTimestamp"] = c.CreationTimestamp.UTC().Format(time.RFC3339)
			}
			out = append(out, m)
		}
		return out
	}
	var statuses []map[string]any
	for ref, object := range s.read {
		if status := reflect.ValueOf(object).Elem().FieldByName("Status"); status.IsValid() && isOurs(ref.Kind) {
			statuses = append(statuses, map[string]any{
				"kind": ref.Kind, "namespace": ref.Namespace, "name": ref.Name, "status": asMap(status.Interface()),
			})
		}
	}
	return &observation{
		Gateways: section{list: list(istio.Gateway)}, VirtualServices: section{list: list(istio.VirtualService)},
		DestRules: section{list: list(istio.DestinationRule)}, Status: section{list: statuses},
	}
}

func isOurs(kind string) bool {
	return slices.Contains([]Kind{
		KindGatewayClass, KindGateway, KindListenerSet, KindHTTPRoute, KindGRPCRoute, KindTLSRoute, KindTCPRoute, KindBackendTLSPolicy,
	}, Kind(kind))
}

func canonicalState(gateways, services, rules, statuses []map[string]any) state {
	out := state{
		gateways: map[string]map[string]any{}, virtualServices: map[string]map[string]any{},
		destinationRules: map[string]map[string]any{}, statuses: map[string]map[string]any{},
	}
	identity := map[string]string{} // of Gateway configs by "namespace/name"
	for _, g := range gateways {
		if text(g, "annotations", annotationSemantics) == "" {
			continue // of an Ingress
		}
		id := text(g, "namespace") + "/" + text(g, "annotations", annotationParents)
		identity[text(g, "namespace")+"/"+text(g, "name")] = id
		delete(g, "name")
		delete(g["annotations"].(map[string]any), istio.AnnotationBackendCertificate) // Istio has no such annotation
		if text(g, "annotations", annotationServiceAccount) == "" {
			delete(g["annotations"].(map[string]any), annotationServiceAccount)
		}
		for _, server := range each(dig(g, "spec", "servers")) {
			sortTexts(server["hosts"])
		}
		out.gateways[id] = g
	}
	for _, v := range services {
		if text(v, "annotations", annotationRouteSemantics) == semanticsGateway {
			out.addVirtualService(v, identity)
		}
	}
	for _, r := range rules {
		delete(r, "name")
		out.destinationRules[text(r, "namespace")+"/"+text(r, "spec", "host")] = r
	}
	for _, s := range statuses {
		if isOurs(text(s, "kind")) {
			out.addStatus(s)
		}
	}
	return out
}

// addVirtualService adds a VirtualService by its namespace, Gateways and hosts. The VirtualServices
// of a TCPRoute or TLSRoute for one listener are merged.
func (s *state) addVirtualService(v map[string]any, identity map[string]string) {
	spec := dig(v, "spec").(map[string]any)
	delete(v, "name")
	parents := strings.Split(text(v, "annotations", annotationParents), ",")
	slices.Sort(parents)
	v["annotations"].(map[string]any)[annotationParents] = strings.Join(parents, ",")
	if len(parents) > 1 {
		delete(v, "creationTimestamp")
	}
	gateways, _ := spec["gateways"].([]any)
	for i, g := range gateways {
		if id := identity[fmt.Sprint(g)]; id != "" {
			gateways[i] = id
		}
	}
	sortTexts(gateways)
	sortTexts(spec["hosts"])
	id := fmt.Sprint(v["namespace"], " ", gateways, " ")
	if spec["http"] != nil {
		id += fmt.Sprint(spec["hosts"])
	} else {
		id += strings.Join(parents, ",")
	}
	if spec["http"] != nil && len(gateways) > 0 && gateways[0] == "mesh" {
		for _, match := range each(each(spec["http"])[0]["match"]) {
			id += fmt.Sprint(" ", match["port"])
		}
	}
	for _, route := range each(spec["http"]) {
		lowerHeaders(route)
		for _, to := range each(route["route"]) {
			lowerHeaders(to)
		}
	}
	for _, route := range append(each(spec["tls"]), each(spec["tcp"])...) {
		zeroWeight(route)
		for _, match := range each(route["match"]) {
			sortTexts(match["sniHosts"])
		}
	}
	if same := s.virtualServices[id]; same != nil && spec["http"] == nil &&
		reflect.DeepEqual(dig(same, "spec", "tls"), spec["tls"]) && reflect.DeepEqual(dig(same, "spec", "tcp"), spec["tcp"]) {
		hosts := append(dig(same, "spec", "hosts").([]any), spec["hosts"].([]any)...)
		sortTexts(hosts)
		spec["hosts"] = slices.Compact(hosts)
	}
	for s.virtualServices[id] != nil && spec["http"] == nil && !reflect.DeepEqual(dig(s.virtualServices[id], "spec", "tls"), spec["tls"]) {
		id += " again"
	}
	s.virtualServices[id] = v
}

// lowerHeaders converts the names of changed headers to lower case.
func lowerHeaders(of map[string]any) {
	for _, direction := range []string{"request", "response"} {
		for _, operation := range []string{"set", "add"} {
			headers, _ := dig(of, "headers", direction, operation).(map[string]any)
			for name, value := range headers {
				delete(headers, name)
				headers[strings.ToLower(name)] = value
			}
		}
	}
}

// zeroWeight is G36: a rule without backends may refuse connections in any way.
func zeroWeight(route map[string]any) {
	for _, to := range each(route["route"]) {
		if text(to, "destination", "subset") == "zero-weight" {
			delete(route, "match")
		}
	}
}

// addStatus adds a status without its incidental parts: messages, times, orders.
func (s *state) addStatus(of map[string]any) {
	status, _ := of["status"].(map[string]any)
	canonicalConditions(status)
	for _, name := range []string{"listeners", "parents", "ancestors"} {
		list := each(status[name])
		for _, entry := range list {
			canonicalConditions(entry)
			kinds := each(entry["supportedKinds"])
			slices.SortFunc(kinds, func(a, b map[string]any) int { return strings.Compare(text(a, "kind"), text(b, "kind")) })
			entry["supportedKinds"] = kinds
		}
		slices.SortFunc(list, func(a, b map[string]any) int { return strings.Compare(entryKey(a), entryKey(b)) })
		if len(list) == 0 {
			delete(status, name)
		} else {
			status[name] = list
		}
	}
	var addresses []any
	for _, a := range each(status["addresses"]) {
		addresses = append(addresses, fmt.Sprint(a["type"], " ", a["value"]))
	}
	sortTexts(addresses)
	if delete(status, "addresses"); len(addresses) > 0 {
		status["addresses"] = addresses
	}
	if len(status) > 0 {
		s.statuses[text(of, "kind")+"/"+text(of, "namespace")+"/"+text(of, "name")] = status
	}
}

func entryKey(entry map[string]any) string {
	data, err := json.Marshal([]any{entry["name"], entry["parentRef"], entry["ancestorRef"], entry["controllerName"]})
	if err != nil {
		panic(err)
	}
	return string(data)
}

func canonicalConditions(of map[string]any) {
	conditions := map[string]any{}
	for _, c := range each(of["conditions"]) {
		if text(c, "type") != "ResolvedWaypoints" { // ambient mode
			conditions[text(c, "type")] = fmt.Sprint(c["status"], " ", c["reason"], " ", c["observedGeneration"])
		}
	}
	if delete(of, "conditions"); len(conditions) > 0 {
		of["conditions"] = conditions
	}
}

func dig(m map[string]any, path ...string) any {
	var v any = m
	for _, name := range path {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

func each(list any) []map[string]any {
	var out []map[string]any
	switch l := list.(type) {
	case []any:
		for _, v := range l {
			out = append(out, v.(map[string]any))
		}
	case []map[string]any:
		return l
	}
	return out
}

func sortTexts(list any) {
	if l, ok := list.([]any); ok {
		slices.SortFunc(l, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	}
}
