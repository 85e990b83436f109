// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"math/big"

	networking "istio.io/api/networking/v1alpha3"
)

// maxHashEntries bounds rings and tables: a proxy has one for each port and subset of each
// service, of 48 bytes for an entry of a ring. Envoy takes rings of 8 Mi and tables of
// 5,000,011.
const maxHashEntries = 1 << 20

// checkLoadBalancer checks the choice of endpoints; nil is valid. outlier is the outlier detection
// of the same policy, or nil.
func checkLoadBalancer(at *field, lb *networking.LoadBalancerSettings, outlier *networking.OutlierDetection) {
	if lb == nil {
		return
	}
	switch policy := lb.LbPolicy.(type) {
	case *networking.LoadBalancerSettings_Simple:
		checkEnum(at.child("simple"), policy.Simple)
		if policy.Simple == networking.LoadBalancerSettings_LEAST_CONN { //nolint:staticcheck // Users still write it.
			at.child("simple").warn("LEAST_CONN is deprecated; use LEAST_REQUEST")
		}
	case *networking.LoadBalancerSettings_ConsistentHash:
		checkConsistentHash(at.child("consistentHash"), policy.ConsistentHash)
	}
	if lb.LocalityLbSetting != nil && lb.ZoneAwareLbSetting != nil {
		at.child("zoneAwareLbSetting").refuse("must not be set together with localityLbSetting")
	}
	checkLocality(at.child("localityLbSetting"), lb.LocalityLbSetting)
	checkZoneAware(at.child("zoneAwareLbSetting"), lb.ZoneAwareLbSetting)
	if outlier == nil {
		warnFailover(at.child("localityLbSetting"), len(lb.LocalityLbSetting.GetFailover()), lb.LocalityLbSetting)
		warnFailover(at.child("zoneAwareLbSetting"), len(lb.ZoneAwareLbSetting.GetFailover()), lb.ZoneAwareLbSetting)
	}
	checkWarmup(at, lb)
}

func checkConsistentHash(at *field, hash *networking.LoadBalancerSettings_ConsistentHashLB) {
	switch key := hash.GetHashKey().(type) {
	case *networking.LoadBalancerSettings_ConsistentHashLB_HttpHeaderName:
		if key.HttpHeaderName == "" {
			at.child("httpHeaderName").refuse("must not be empty")
		}
	case *networking.LoadBalancerSettings_ConsistentHashLB_HttpQueryParameterName:
		if key.HttpQueryParameterName == "" {
			at.child("httpQueryParameterName").refuse("must not be empty")
		}
	case *networking.LoadBalancerSettings_ConsistentHashLB_HttpCookie:
		checkHashCookie(at.child("httpCookie"), key.HttpCookie)
	case nil:
		at.warn("has no hash key: every request is hashed at random")
	}
	minimum := hash.GetMinimumRingSize() //nolint:staticcheck // Users still write the deprecated field.
	if minimum != 0 {
		at.child("minimumRingSize").warn("is deprecated; use ringHash.minimumRingSize")
	}
	if minimum != 0 && hash.GetHashAlgorithm() != nil {
		at.child("minimumRingSize").refuse("must not be set together with ringHash or maglev")
	}
	if maglev, ok := hash.GetHashAlgorithm().(*networking.LoadBalancerSettings_ConsistentHashLB_Maglev); ok {
		size := maglev.Maglev.GetTableSize()
		if size >= maxHashEntries || !new(big.Int).SetUint64(size).ProbablyPrime(0) {
			at.child("maglev").child("tableSize").refuse("must be a prime number less than %d, is %d", maxHashEntries, size)
		}
	}
	checkRingSize(at.child("minimumRingSize"), minimum)
	checkRingSize(at.child("ringHash").child("minimumRingSize"), hash.GetRingHash().GetMinimumRingSize())
}

func checkRingSize(at *field, size uint64) {
	if size > maxHashEntries {
		at.refuse("must be at most %d, which is 48 MiB of each proxy for each port and subset of each service, is %d", maxHashEntries, size)
	}
}

func checkHashCookie(at *field, cookie *networking.LoadBalancerSettings_ConsistentHashLB_HTTPCookie) {
	if cookie.GetName() == "" {
		at.child("name").refuse("is required")
	}
	checkDurationOrZero(at.child("ttl"), cookie.GetTtl())
	var names repetitions[string]
	for place, attribute := range elements(at, "attributes", cookie.GetAttributes()) {
		checkSet(place.child("name"), attribute.Name, "is required")
		checkLength(place.child("name"), attribute.Name, maxHeaderLength)
		checkLength(place.child("value"), attribute.Value, maxHeaderLength)
		names.refuse(place.child("name"), attribute.Name, place.index, "repeats attributes[%d].name: %q")
	}
}

func checkWarmup(at *field, lb *networking.LoadBalancerSettings) {
	deprecated := lb.WarmupDurationSecs //nolint:staticcheck // Users still write the deprecated field.
	checkDuration(at.child("warmupDurationSecs"), deprecated)
	if deprecated != nil {
		at.child("warmupDurationSecs").warn("is deprecated; use warmup.duration")
	}
	if deprecated != nil && lb.Warmup != nil {
		at.child("warmupDurationSecs").refuse("must not be set together with warmup")
	}
	if deprecated == nil && lb.Warmup == nil {
		return
	}
	switch lb.GetSimple() {
	case networking.LoadBalancerSettings_RANDOM, networking.LoadBalancerSettings_PASSTHROUGH:
		at.warn("warm-up has no effect with %s, only with ROUND_ROBIN and LEAST_REQUEST", lb.GetSimple())
	default:
		if lb.GetConsistentHash() != nil {
			at.warn("warm-up has no effect with consistentHash, only with ROUND_ROBIN and LEAST_REQUEST")
		}
	}
	if lb.Warmup == nil {
		return
	}
	warmup := at.child("warmup")
	checkRequiredDuration(warmup.child("duration"), lb.Warmup.Duration)
	checkPercent(warmup.child("minimumPercent"), lb.Warmup.GetMinimumPercent().GetValue())
	// The negation rejects NaN, too.
	if a := lb.Warmup.Aggression; a != nil && !(a.Value > 0) {
		warmup.child("aggression").refuse("must be above 0, is %v", a.Value)
	}
}
