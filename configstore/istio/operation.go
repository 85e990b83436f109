// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"strconv"
	"strings"

	security "istio.io/api/security/v1beta1"
)

// checkOperation checks which requests a rule of an AuthorizationPolicy is for.
func checkOperation(at *field, operation *security.Operation) {
	lists := checkNoEmpties(at, []stringList{
		{"hosts", operation.Hosts},
		{"notHosts", operation.NotHosts},
		{"ports", operation.Ports},
		{"notPorts", operation.NotPorts},
		{"methods", operation.Methods},
		{"notMethods", operation.NotMethods},
		{"paths", operation.Paths},
		{"notPaths", operation.NotPaths},
	})
	if lists == 0 {
		at.refuse("must not be empty")
	}
	checkPorts(at, "ports", operation.Ports)
	checkPorts(at, "notPorts", operation.NotPorts)
	checkPaths(at, "paths", operation.Paths)
	checkPaths(at, "notPaths", operation.NotPaths)
}

// checkPorts checks ports written as strings; empty ones are refused elsewhere.
func checkPorts(at *field, name string, ports []string) {
	for i, port := range ports {
		if port == "" {
			continue
		}
		if number, err := strconv.ParseUint(port, 10, 32); err != nil || number < 1 || number > maxPort {
			at.elem(name, i).refuse("must be 1–65535, is %q", port)
		}
	}
}

// The operators of path templates.
const (
	templateOne  = "{*}"
	templateRest = "{**}"
)

func checkPaths(at *field, name string, paths []string) {
	for i, path := range paths {
		if problem := templateProblem(path); problem != "" {
			at.elem(name, i).refuse("%s, is %q", problem, path)
		}
	}
}

// templateProblem says what is wrong with a path that holds an operator, or
// returns "": an operator takes a whole segment, there are no other wildcards
// and braces, and no operator follows {**}.
func templateProblem(path string) string {
	if !strings.Contains(path, templateOne) && !strings.Contains(path, templateRest) {
		return ""
	}
	rest := false
	for segment := range strings.SplitSeq(path, "/") {
		operator := segment == templateOne || segment == templateRest
		switch {
		case operator && rest:
			return "must have {**} as its last operator"
		case !operator && strings.ContainsAny(segment, "*{}"):
			return "must have {*} and {**} as whole segments and no other wildcards or braces"
		}
		rest = rest || segment == templateRest
	}
	return ""
}

// checkCondition checks a condition on an attribute of a request.
func checkCondition(at *field, condition *security.Condition) {
	lists := checkNoEmpties(at, []stringList{{"values", condition.Values}, {"notValues", condition.NotValues}})
	if lists == 0 {
		at.refuse("must have one of values, notValues")
	}
	switch key := condition.Key; {
	case key == "":
		at.child("key").refuse("is required")
	case key == "source.ip", key == "remote.ip", key == "destination.ip":
		for _, list := range []stringList{{"values", condition.Values}, {"notValues", condition.NotValues}} {
			for i, value := range list.values {
				if value != "" {
					checkSubnet(at.elem(list.name, i), value)
				}
			}
		}
	case key == "destination.port":
		checkPorts(at, "values", condition.Values)
		checkPorts(at, "notValues", condition.NotValues)
	case !isAttribute(key):
		at.child("key").refuse("must be an attribute of Istio's authorization, is %q", key)
	}
}

// isAttribute knows the keys of Istio's security reference, "Authorization
// Policy Conditions".
func isAttribute(key string) bool {
	switch key {
	case "source.namespace", "source.principal", "source.serviceAccount", "source.trustDomain",
		"request.auth.principal", "request.auth.audiences", "request.auth.presenter", "connection.sni":
		return true
	default:
		return isIndexed(key, "request.headers") || isIndexed(key, "request.auth.claims") ||
			strings.HasPrefix(key, "experimental.envoy.filters.")
	}
}

// isIndexed reports whether the key is "attribute[name]", or with more names
// "attribute[name][name]".
func isIndexed(key, attribute string) bool {
	index, ok := strings.CutPrefix(key, attribute)
	return ok && len(index) > 2 && index[0] == '[' && index[len(index)-1] == ']'
}
