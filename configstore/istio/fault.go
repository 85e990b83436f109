// SPDX-License-Identifier: Apache-2.0

package istio

import networking "istio.io/api/networking/v1alpha3"

// checkFault checks the faults to inject; nil is fine.
func checkFault(at *field, fault *networking.HTTPFaultInjection) {
	if fault == nil {
		return
	}
	if fault.Delay == nil && fault.Abort == nil {
		at.refuse("must have one of delay, abort")
	}
	if fault.Delay != nil {
		checkDelay(at.child("delay"), fault.Delay)
	}
	if fault.Abort != nil {
		checkAbort(at.child("abort"), fault.Abort)
	}
}

func checkDelay(at *field, delay *networking.HTTPFaultInjection_Delay) {
	if p := delay.Percent; p != 0 { //nolint:staticcheck // Users still write the deprecated field.
		checkPercent(at.child("percent"), p)
		at.child("percent").warn("is deprecated; use percentage")
	}
	checkPercent(at.child("percentage").child("value"), delay.GetPercentage().GetValue())
	switch kind := delay.HttpDelayType.(type) {
	case *networking.HTTPFaultInjection_Delay_FixedDelay:
		checkRequiredDuration(at.child("fixedDelay"), kind.FixedDelay)
	case *networking.HTTPFaultInjection_Delay_ExponentialDelay:
		at.child("exponentialDelay").refuse("is not supported; use fixedDelay")
	default:
		at.warn("has no effect without fixedDelay")
	}
}

func checkAbort(at *field, abort *networking.HTTPFaultInjection_Abort) {
	checkPercent(at.child("percentage").child("value"), abort.GetPercentage().GetValue())
	switch kind := abort.ErrorType.(type) {
	case *networking.HTTPFaultInjection_Abort_HttpStatus:
		checkStatus(at.child("httpStatus"), kind.HttpStatus)
	case *networking.HTTPFaultInjection_Abort_GrpcStatus:
		if !isGRPCStatus(kind.GrpcStatus) {
			at.child("grpcStatus").refuse("must be the name of a gRPC status, such as UNAVAILABLE, is %q", kind.GrpcStatus)
		}
	case *networking.HTTPFaultInjection_Abort_Http2Error:
		at.child("http2Error").refuse("is not supported; use httpStatus or grpcStatus")
	default:
		at.warn("has no effect without httpStatus or grpcStatus")
	}
}

// isGRPCStatus knows the names of gRPC's statuscodes.md.
func isGRPCStatus(s string) bool {
	switch s {
	case "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
		"PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
		"INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED":
		return true
	default:
		return false
	}
}
