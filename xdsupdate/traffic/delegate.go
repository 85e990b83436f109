// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	networking "istio.io/api/networking/v1alpha3"
)

// delegated returns the rules of a delegate as the root's rule lets them count:
// for what the matches of both have in common. A rule of the delegate with a match
// that has nothing in common with the root's is left out, and so is one that names
// another delegate: there is one level only.
//
// It stops when there are too many matches, before they are made; what it has returned
// is of no use then.
func (j *joining) delegated(root *networking.HTTPRoute, rules []*networking.HTTPRoute) []*networking.HTTPRoute {
	var out []*networking.HTTPRoute
	before := j.matches
	j.over = false
	for _, r := range rules {
		if r.GetDelegate() != nil {
			continue
		}
		j.matches += max(1, len(root.GetMatch())) * max(1, len(r.GetMatch()))
		if exceeds(j.matches, j.limit) {
			j.matches, j.over = before, true
			return nil
		}
		if matches, ok := joinMatches(root.GetMatch(), r.GetMatch()); ok {
			joined := shallowClone(r)
			joined.Match = matches
			inherit(joined, root)
			out = append(out, joined)
		}
	}
	return out
}

// joining counts the matches of the rules of a VirtualService.
type joining struct {
	matches int
	limit   int // 0: none
	// over: there were too many with the last rule that delegates.
	over bool
}

// shallowClone returns a rule that shares the values of its fields: rules are not
// modified.
func shallowClone(r *networking.HTTPRoute) *networking.HTTPRoute {
	out := &networking.HTTPRoute{}
	r.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		out.ProtoReflect().Set(f, v)
		return true
	})
	return out
}

// inherit fills in what a rule of a delegate does not say: each field as a whole.
func inherit(r, root *networking.HTTPRoute) {
	r.Name = joinNames(root.GetName(), r.GetName())
	from, to := root.ProtoReflect(), r.ProtoReflect()
	for _, field := range []string{
		"rewrite", "timeout", "retries", "fault", "mirror", "mirrors", "mirror_percent", "mirror_percentage",
		"cors_policy", "headers", "direct_response",
	} {
		f := from.Descriptor().Fields().ByTextName(field)
		if from.Has(f) && !to.Has(f) {
			to.Set(f, from.Get(f))
		}
	}
}

func joinNames(root, name string) string {
	if root == "" || name == "" {
		return root + name
	}
	return root + "-" + name
}

// joinMatches returns what the matches of a root and of a delegate have in common:
// each of the delegate's with each of the root's that fits. It is not ok if one of
// the delegate's fits none. No matches match everything.
func joinMatches(root, delegate []*networking.HTTPMatchRequest) (out []*networking.HTTPMatchRequest, ok bool) {
	if len(root) == 0 || len(delegate) == 0 {
		return slices.Concat(root, delegate), true
	}
	for _, d := range delegate {
		found := false
		for _, r := range root {
			if fits(r, d) {
				out = append(out, joinMatch(r, d))
				found = true
			}
		}
		if !found {
			return nil, false
		}
	}
	return out, true
}

// fits reports whether a match of a delegate is, as far as both say something of
// the same, inside that of the root.
func fits(root, d *networking.HTTPMatchRequest) bool {
	if !valueFits(root.GetUri(), d.GetUri()) || !valueFits(root.GetScheme(), d.GetScheme()) ||
		!valueFits(root.GetMethod(), d.GetMethod()) || !valueFits(root.GetAuthority(), d.GetAuthority()) {
		return false
	}
	if !valuesFit(root.GetHeaders(), d.GetHeaders()) || !valuesFit(root.GetWithoutHeaders(), d.GetWithoutHeaders()) ||
		!valuesFit(root.GetQueryParams(), d.GetQueryParams()) {
		return false
	}
	if root.GetIgnoreUriCase() != d.GetIgnoreUriCase() || !same(root.GetPort(), d.GetPort()) ||
		!same(root.GetSourceNamespace(), d.GetSourceNamespace()) {
		return false
	}
	for key, value := range d.GetSourceLabels() {
		if v, ok := root.GetSourceLabels()[key]; ok && v != value {
			return false
		}
	}
	outside := func(g string) bool { return !slices.Contains(root.GetGateways(), g) }
	return len(root.GetGateways()) == 0 || !slices.ContainsFunc(d.GetGateways(), outside)
}

// same reports whether two values are equal, or one is not given.
func same[T comparable](a, b T) bool {
	var none T
	return a == none || b == none || a == b
}

func valuesFit(root, d map[string]*networking.StringMatch) bool {
	for key, value := range d {
		if r, ok := root[key]; ok && !valueFits(r, value) {
			return false
		}
	}
	return true
}

// valueFits compares matches of one value; nil says nothing. What a regular
// expression has in common with anything is not looked into (Istio 1.30).
func valueFits(root, d *networking.StringMatch) bool {
	if root == nil || d == nil {
		return true
	}
	switch r := root.GetMatchType().(type) {
	case nil:
		return d.GetMatchType() == nil
	case *networking.StringMatch_Exact:
		exact, ok := d.GetMatchType().(*networking.StringMatch_Exact)
		return ok && exact.Exact == r.Exact
	case *networking.StringMatch_Prefix:
		switch t := d.GetMatchType().(type) {
		case *networking.StringMatch_Exact:
			return strings.HasPrefix(t.Exact, r.Prefix)
		case *networking.StringMatch_Prefix:
			return strings.HasPrefix(t.Prefix, r.Prefix)
		}
	}
	return false
}

// joinMatch returns the match of what passes both: the delegate's, which is the
// narrower one where both say something, and what only the root's says.
func joinMatch(root, d *networking.HTTPMatchRequest) *networking.HTTPMatchRequest {
	out := &networking.HTTPMatchRequest{
		Name:            joinNames(root.GetName(), d.GetName()),
		Uri:             cmp.Or(d.GetUri(), root.GetUri()),
		Scheme:          cmp.Or(d.GetScheme(), root.GetScheme()),
		Method:          cmp.Or(d.GetMethod(), root.GetMethod()),
		Authority:       cmp.Or(d.GetAuthority(), root.GetAuthority()),
		Headers:         joinMaps(root.GetHeaders(), d.GetHeaders()),
		WithoutHeaders:  joinMaps(root.GetWithoutHeaders(), d.GetWithoutHeaders()),
		QueryParams:     joinMaps(root.GetQueryParams(), d.GetQueryParams()),
		SourceLabels:    joinMaps(root.GetSourceLabels(), d.GetSourceLabels()),
		SourceNamespace: cmp.Or(d.GetSourceNamespace(), root.GetSourceNamespace()),
		Port:            cmp.Or(d.GetPort(), root.GetPort()),
		IgnoreUriCase:   d.GetIgnoreUriCase(),
		StatPrefix:      cmp.Or(d.GetStatPrefix(), root.GetStatPrefix()),
		Gateways:        d.GetGateways(),
	}
	if len(out.Gateways) == 0 {
		out.Gateways = root.GetGateways()
	}
	return out
}

// joinMaps returns what is in either map; the second one's values count.
func joinMaps[V any](a, b map[string]V) map[string]V {
	if len(a) == 0 {
		return b
	}
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}
