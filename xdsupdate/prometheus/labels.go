// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"google.golang.org/grpc/codes"

	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// other is the label value for everything that has no value of its own.
const other = "other"

// secretType is the type URL of SDS. It repeats the constant of package secrets, because importing
// that package would link the implementation of SDS.
const secretType = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"

// typeURLs returns the values of the label type_url except other.
func typeURLs(constructor string, more []string) []string {
	types := []string{envoy.ClusterType, envoy.LoadAssignmentType, envoy.ListenerType, envoy.RouteType, secretType}
	for i, url := range more {
		if url == "" || url == other || !utf8.ValidString(url) {
			panic(fmt.Sprintf("%s: Options.TypeURLs[%d] is not a type URL: %q", constructor, i, url))
		}
		if !slices.Contains(types, url) {
			types = append(types, url)
		}
	}
	return types
}

// protocols are the values of the label protocol.
func protocols() []string { return []string{"sotw", "delta"} }

// protocol returns the index of a stream's protocol in protocols.
func protocol(s ads.Stream) int {
	if s.Delta {
		return 1
	}
	return 0
}

// knownCodes is the number of gRPC status codes. A host may return others.
const knownCodes = int(codes.Unauthenticated) + 1

// statusCodes are the values of the label code, by code; the last one is other.
func statusCodes() []string {
	out := make([]string, 0, knownCodes+1)
	for code := range knownCodes {
		out = append(out, codes.Code(code).String()) //nolint:gosec // it is small
	}
	return append(out, other)
}

// limits are the values of the label limit; the last one is other.
func limits() []string {
	out := []string{}
	for _, limit := range []ads.Limit{
		ads.LimitStreams, ads.LimitUnidentified, ads.LimitStreamsPerNode, ads.LimitNames, ads.LimitTypes, ads.LimitAllNames, ads.LimitRequestBytes, ads.LimitNodeBytes,
		ads.LimitRequestsPerSecond,
	} {
		out = append(out, string(limit))
	}
	return append(out, other)
}

// The indexes of kinds.
const (
	kindEndpoints = iota
	kindFull
	kindForced
)

// kinds are the values of the label kind of pushes.
func kinds() []string { return []string{"endpoints", "full", "forced"} }

// kindOf returns the index of a push's kind in kinds.
func kindOf(r *xdsupdate.PushRequest) int {
	switch {
	case r.Forced:
		return kindForced
	case r.Full:
		return kindFull
	default:
		return kindEndpoints
	}
}

// reasons are the values of the label reason; the last one is other.
func reasons() []string {
	return []string{
		string(xdsupdate.ReasonEndpoint), string(xdsupdate.ReasonConfig), string(xdsupdate.ReasonService),
		string(xdsupdate.ReasonCluster), string(xdsupdate.ReasonUnknown), other,
	}
}

// parts are the values of the label part: the parts of ads.PanicEvent; the last one is other.
func parts() []string {
	return []string{
		"group", "host", "observer", "provider", "proxy", "push", "resource", "services", "stream",
		"secret", other,
	}
}

// The indexes of causes.
const (
	causeLeftOut = iota
	causeQuarantined
	causeOther
)

// causes are the values of the label cause.
func causes() []string { return []string{"left_out", "quarantined", other} }

// causeOf returns the index in causes of an error given to Observer.Failed.
func causeOf(err error) int {
	var fault *ads.Fault
	switch {
	case !errors.As(err, &fault):
		return causeOther
	case fault.Status == ads.FaultLeftOut:
		return causeQuarantined
	default:
		return causeLeftOut
	}
}
