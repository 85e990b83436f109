// SPDX-License-Identifier: Apache-2.0

package istio

import networking "istio.io/api/networking/v1alpha3"

// checkOutlierDetection checks when hosts are ejected; nil is fine.
func checkOutlierDetection(at *field, outlier *networking.OutlierDetection) {
	if outlier == nil {
		return
	}
	if n := outlier.ConsecutiveErrors; n != 0 { //nolint:staticcheck // Users still write the deprecated field.
		checkNotNegative(at.child("consecutiveErrors"), n)
		at.child("consecutiveErrors").warn("is deprecated; use consecutive5xxErrors or consecutiveGatewayErrors")
	}
	checkDuration(at.child("interval"), outlier.Interval)
	checkDuration(at.child("baseEjectionTime"), outlier.BaseEjectionTime)
	checkPercent(at.child("maxEjectionPercent"), outlier.MaxEjectionPercent)
	checkPercent(at.child("minHealthPercent"), outlier.MinHealthPercent)
	if n := outlier.GetConsecutiveLocalOriginFailures().GetValue(); n > 0 && !outlier.SplitExternalLocalOriginErrors {
		at.child("consecutiveLocalOriginFailures").refuse("must not be set without splitExternalLocalOriginErrors, is %d", n)
	}
	for i, code := range outlier.OutlierDetectionHttpErrorCodes {
		if code < 100 || code > 599 {
			at.elem("outlierDetectionHttpErrorCodes", i).refuse("must be 100–599, is %d", code)
		}
	}
}
