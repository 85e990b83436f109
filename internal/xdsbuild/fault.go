// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	commonfault "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/common/fault/v3"
	httpfault "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/anypb"
	networking "istio.io/api/networking/v1alpha3"
)

// httpFault returns the configuration of the fault filter, nil if no fault can be injected.
func httpFault(f *networking.HTTPFaultInjection) *anypb.Any {
	if f == nil {
		return nil
	}
	out := &httpfault.HTTPFault{Delay: faultDelay(f.GetDelay()), Abort: faultAbort(f.GetAbort())}
	if out.Delay == nil && out.Abort == nil {
		return nil
	}
	return packed(out)
}

func faultDelay(d *networking.HTTPFaultInjection_Delay) *commonfault.FaultDelay {
	fixed := d.GetFixedDelay().AsDuration()
	if fixed <= 0 {
		return nil
	}
	share := percentage(d.GetPercentage())
	if share == nil { // without either, no request is delayed
		share = &typev3.FractionalPercent{Numerator: uint32(min(max(d.GetPercent(), 0), 100))} //nolint:staticcheck // Users still write it.
	}
	return &commonfault.FaultDelay{
		FaultDelaySecifier: &commonfault.FaultDelay_FixedDelay{FixedDelay: duration(d.GetFixedDelay())}, Percentage: share,
	}
}

func faultAbort(a *networking.HTTPFaultInjection_Abort) *httpfault.FaultAbort {
	if a == nil {
		return nil
	}
	out := &httpfault.FaultAbort{Percentage: percentage(a.GetPercentage())}
	switch e := a.GetErrorType().(type) {
	case *networking.HTTPFaultInjection_Abort_HttpStatus:
		if e.HttpStatus < 200 || e.HttpStatus > 599 {
			return nil
		}
		out.ErrorType = &httpfault.FaultAbort_HttpStatus{HttpStatus: uint32(e.HttpStatus)}
	case *networking.HTTPFaultInjection_Abort_GrpcStatus:
		var code codes.Code
		if err := code.UnmarshalJSON([]byte(`"` + e.GrpcStatus + `"`)); err != nil {
			return nil
		}
		out.ErrorType = &httpfault.FaultAbort_GrpcStatus{GrpcStatus: uint32(code)}
	default:
		return nil
	}
	return out
}
