// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	networking "istio.io/api/networking/v1alpha3"
)

// delegated returns the rules of a delegate, restricted to the root rule that includes it: each
// match is joined with the root's matches that it fits. A rule with a match that does not fit any
// of them is left out, and so is a rule that delegates again, because only one level of delegation
// is allowed.
//
// It stops before the limit of matches is exceeded, sets over, and returns nil.
func (j *joining) delegated(root *networking.HTTPRoute, rules []*networking.HTTPRoute) []*networking.HTTPRoute {
	var out []*networking.HTTPRoute
	before := j.matches
	j.over = false
	for _, r := range rules {
		if r.GetDelegate() != nil {
			continue
		}
		j.matches += max(1, len(root.GetMatch())) * max(1, len(r.GetMatch()))
		if j.limit > 0 && j.matches > j.limit {
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

// Includes reports whether a rule that delegates includes a rule of its delegate.
func Includes(root, rule *networking.HTTPRoute) bool {
	_, ok := joinMatches(root.GetMatch(), rule.GetMatch())
	return ok && rule.GetDelegate() == nil
}

// joining counts the matches of the rules of a VirtualService.
type joining struct {
	matches int
	limit   int // 0 means no limit
	// over is set if the last delegating rule exceeded the limit.
	over bool
}

// shallowClone returns a copy of a rule that shares its field values, which are never modified.
func shallowClone(r *networking.HTTPRoute) *networking.HTTPRoute {
	out := &networking.HTTPRoute{}
	r.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		out.ProtoReflect().Set(f, v)
		return true
	})
	return out
}

// inherit copies the root's fields that a rule of a delegate does not set, each as a whole.
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

// joinMatches returns the intersections of a root's and a delegate's matches: one for each pair
// that fits. It is not ok if a match of the delegate fits no match of the root. An empty list
// matches every request.
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

// fits reports whether two matches can be joined, because the delegate's is at least as narrow as the
// root's in every condition that both have. In withoutHeaders, either condition may be the narrower one.
func fits(root, d *networking.HTTPMatchRequest) bool {
	if !valueFits(root.GetUri(), d.GetUri()) || !valueFits(root.GetScheme(), d.GetScheme()) ||
		!valueFits(root.GetMethod(), d.GetMethod()) || !valueFits(root.GetAuthority(), d.GetAuthority()) {
		return false
	}
	if !valuesFit(root.GetHeaders(), d.GetHeaders()) || !valuesFit(root.GetQueryParams(), d.GetQueryParams()) {
		return false
	}
	for key, value := range d.GetWithoutHeaders() {
		if r, ok := root.GetWithoutHeaders()[key]; ok && !valueFits(r, value) && !valueFits(value, r) {
			return false
		}
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

// same reports whether two values are equal or one of them is zero.
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

// valueFits reports whether the delegate's match of a value is inside the root's. A nil match has
// no condition. Regular expressions fit only nil matches, because their intersection with others is
// not computed (Istio 1.30).
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

// joinMatch returns the intersection of two matches that fit. If both have a condition on the same
// value, it uses the narrower condition. Istio 1.30 uses the delegate's, which may be the wider one in
// withoutHeaders.
func joinMatch(root, d *networking.HTTPMatchRequest) *networking.HTTPMatchRequest {
	out := &networking.HTTPMatchRequest{
		Name:            joinNames(root.GetName(), d.GetName()),
		Uri:             cmp.Or(d.GetUri(), root.GetUri()),
		Scheme:          cmp.Or(d.GetScheme(), root.GetScheme()),
		Method:          cmp.Or(d.GetMethod(), root.GetMethod()),
		Authority:       cmp.Or(d.GetAuthority(), root.GetAuthority()),
		Headers:         joinMaps(root.GetHeaders(), d.GetHeaders()),
		WithoutHeaders:  joinExclusions(root.GetWithoutHeaders(), d.GetWithoutHeaders()),
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

// joinExclusions returns the union of two withoutHeaders. Of two values for one header, the one that
// excludes more counts.
func joinExclusions(root, d map[string]*networking.StringMatch) map[string]*networking.StringMatch {
	out := joinMaps(d, root)
	for key, value := range d {
		if r, ok := root[key]; ok && valueFits(value, r) {
			out[key] = value
		}
	}
	return out
}

// joinMaps returns the union of two maps. Values of the second take precedence.
func joinMaps[V any](a, b map[string]V) map[string]V {
	if len(a) == 0 {
		return b
	}
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}
