// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"strconv"
	"strings"

	security "istio.io/api/security/v1beta1"
)

// checkOperation checks which requests a rule of an AuthorizationPolicy is for.
func checkOperation(at *field, operation *security.Operation) {
	checkValues(at, "must not be empty",
		valueList{"hosts", operation.Hosts, nil, innerStar},
		valueList{"notHosts", operation.NotHosts, nil, innerStar},
		valueList{"ports", operation.Ports, checkPorts, nil},
		valueList{"notPorts", operation.NotPorts, checkPorts, nil},
		valueList{"methods", operation.Methods, nil, innerStar},
		valueList{"notMethods", operation.NotMethods, nil, innerStar},
		valueList{"paths", operation.Paths, checkPaths, unmatchedPath},
		valueList{"notPaths", operation.NotPaths, checkPaths, unmatchedPath},
	)
}

// checkPorts checks ports written as strings; empty ones are refused elsewhere.
func checkPorts(at *field, name string, ports []string) {
	for i, port := range ports {
		if port == "" {
			continue
		}
		switch number, err := strconv.ParseUint(port, 10, 32); {
		case err != nil || number > maxPort:
			at.elem(name, i).refuse("must be 1–65535, is %q", port)
		case number == 0:
			at.elem(name, i).warn("no connection has this port")
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

// templateProblem describes why a path is invalid, or returns "". Braces make a path a template,
// where {*} stands for a segment and {**} for the rest. A template that Envoy cannot parse would
// crash it.
func templateProblem(path string) string {
	template := strings.Contains(path, templateOne) || strings.Contains(path, templateRest)
	segments, absolute := strings.CutPrefix(path, "/")
	if template && !absolute {
		return "must begin with /"
	}
	rest := false
	for segment := range strings.SplitSeq(strings.TrimSuffix(segments, "/"), "/") {
		operator := segment == templateOne || segment == templateRest
		switch {
		case operator && rest:
			return "must have {**} as its last operator"
		case operator:
		case strings.ContainsAny(segment, "{}"):
			return "must have no braces but {*} and {**} as whole segments"
		case template && !isPathLiteral(segment):
			return "must have, beside {*} and {**}, only segments of letters, digits and -._~%!$&'()+,;:@="
		}
		rest = rest || segment == templateRest
	}
	return ""
}

// isPathLiteral reports whether a segment of a template stands for itself.
func isPathLiteral(segment string) bool {
	for i := range len(segment) {
		if c := segment[i]; !isAlphanumeric(c) && strings.IndexByte("-._~%!$&'()+,;:@=", c) < 0 {
			return false
		}
	}
	return segment != ""
}

// checkCondition checks a condition on an attribute of a request.
func checkCondition(at *field, condition *security.Condition, action security.AuthorizationPolicy_Action) {
	check, unmatched := conditionChecks(condition.Key)
	checkValues(at, "must have one of values, notValues",
		valueList{"values", condition.Values, check, unmatched}, valueList{"notValues", condition.NotValues, check, unmatched})
	if condition.Key == "" {
		at.child("key").refuse("is required")
		return
	}
	if action == security.AuthorizationPolicy_CUSTOM && isIdentity(condition.Key) {
		at.child("key").refuse("must not be an identity for action CUSTOM, is %q", condition.Key)
	}
	if !isAttribute(condition.Key) {
		at.child("key").refuse("must be an attribute of Istio's authorization, is %q", condition.Key)
	}
}

// conditionChecks returns how the values of an attribute are checked: see valueList.
func conditionChecks(key string) (check func(*field, string, []string), unmatched func(string) string) {
	switch key {
	case "source.ip", "remote.ip", "destination.ip":
		return checkBlocks, nil
	case "destination.port":
		return checkPorts, nil
	case "source.principal":
		return nil, unmatchedPrincipal
	case "source.namespace":
		return nil, unmatchedNamespace
	case "source.serviceAccount":
		return checkServiceAccounts, unmatchedAccount
	case "source.trustDomain":
		return checkWildcards, unmatchedTrustDomain
	default:
		return nil, innerStar
	}
}

// isIdentity reports whether an attribute comes from a certificate or a token.
func isIdentity(key string) bool {
	switch key {
	case "source.namespace", "source.principal", "source.serviceAccount", "source.trustDomain":
		return true
	default:
		return strings.HasPrefix(key, "request.auth.")
	}
}

// isAttribute knows the keys of Istio's security reference, "Authorization
// Policy Conditions".
func isAttribute(key string) bool {
	switch key {
	case "source.ip", "remote.ip", "destination.ip", "destination.port",
		"source.namespace", "source.principal", "source.serviceAccount", "source.trustDomain",
		"request.auth.principal", "request.auth.audiences", "request.auth.presenter", "connection.sni":
		return true
	default:
		filter, _, _ := strings.Cut(key, "[")
		return isIndexed(key, "request.headers") || isIndexed(key, "request.auth.claims") && !strings.Contains(key, "[]") ||
			strings.HasPrefix(key, "experimental.envoy.filters.") && isIndexed(key, filter)
	}
}

// isIndexed reports whether the key is "attribute[name]", or with more names
// "attribute[name][name]".
func isIndexed(key, attribute string) bool {
	index, ok := strings.CutPrefix(key, attribute)
	return ok && len(index) > 2 && index[0] == '[' && index[len(index)-1] == ']'
}
