// SPDX-License-Identifier: Apache-2.0

package xdsbuild_test

import (
	"testing"
)

// TestUpstreamOutliers: outlier detection.
func TestUpstreamOutliers(t *testing.T) {
	checkClusters(t, []upstreamCase{
		{
			name: "outliers",
			rule: `{"trafficPolicy":{"outlierDetection":{"consecutive5xxErrors":7,"consecutiveGatewayErrors":3,"interval":"5s","baseEjectionTime":"30s",
				"maxEjectionPercent":50,"minHealthPercent":20,"splitExternalLocalOriginErrors":true,"consecutiveLocalOriginFailures":4}}}`,
			want: `"commonLbConfig":{"healthyPanicThreshold":{"value":20}},"connectTimeout":"10s","type":"EDS","lbPolicy":"LEAST_REQUEST",
				"outlierDetection":{"baseEjectionTime":"30s","consecutive5xx":7,"consecutiveGatewayFailure":3,"consecutiveLocalOriginFailure":4,
				"enforcingConsecutive5xx":100,"enforcingConsecutiveGatewayFailure":100,"enforcingConsecutiveLocalOriginFailure":100,
				"enforcingLocalOriginSuccessRate":0,"enforcingSuccessRate":0,"interval":"5s","maxEjectionPercent":50,"splitExternalLocalOriginErrors":true}`,
		},
		{
			name: "outliers, empty", rule: `{"trafficPolicy":{"outlierDetection":{}}}`,
			want: least + `,"outlierDetection":{"enforcingSuccessRate":0}`,
		},
		{
			name: "outliers, off", rule: `{"trafficPolicy":{"outlierDetection":{"consecutive5xxErrors":0}}}`,
			want: least + `,"outlierDetection":{"consecutive5xx":0,"enforcingConsecutive5xx":0,"enforcingSuccessRate":0}`,
		},
		{
			name: "outliers, codes", rule: `{"trafficPolicy":{"outlierDetection":{"outlierDetectionHttpErrorCodes":[429,503]}}}`,
			want: least + `,"outlierDetection":{"enforcingSuccessRate":0}` + optionsOf(http1+`,"outlierDetection":{"errorMatcher":{"orMatch":{"rules":[
				{"httpResponseHeadersMatch":{"headers":[{"name":":status","stringMatch":{"exact":"429"}}]}},
				{"httpResponseHeadersMatch":{"headers":[{"name":":status","stringMatch":{"exact":"503"}}]}}]}}}`),
		},
		{
			name: "outliers, one code", rule: `{"trafficPolicy":{"outlierDetection":{"outlierDetectionHttpErrorCodes":[429]}}}`,
			want: least + `,"outlierDetection":{"enforcingSuccessRate":0}` + optionsOf(http1+`,"outlierDetection":{"errorMatcher":{
				"httpResponseHeadersMatch":{"headers":[{"name":":status","stringMatch":{"exact":"429"}}]}}}`),
		},
		{
			name: "outliers of the mesh", mesh: `{"enableAutoMtls":false,"defaultTrafficPolicy":{"outlierDetection":{"consecutive5xxErrors":4}}}`,
			want: least + `,"outlierDetection":{"consecutive5xx":4,"enforcingConsecutive5xx":100,"enforcingSuccessRate":0}`,
		},
	})
}
