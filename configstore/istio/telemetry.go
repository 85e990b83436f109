// SPDX-License-Identifier: Apache-2.0

package istio

import (
	telemetry "istio.io/api/telemetry/v1alpha1"

	"github.com/pilotkit/pilotkit/configstore"
)

// telemetryRules are the rules for a Telemetry.
func telemetryRules(spec *field, _ configstore.Config, t *telemetry.Telemetry) {
	checkPolicyTarget(spec, t.Selector, t.TargetRef, t.TargetRefs)
	if len(t.Tracing) > 1 {
		spec.child("tracing").warn("has %d elements; Istio takes the first only", len(t.Tracing))
	}
	for at, tracing := range elements(spec, "tracing", t.Tracing) {
		checkTracing(at, tracing)
	}
	for at, metrics := range elements(spec, "metrics", t.Metrics) {
		checkMetrics(at, metrics)
	}
	for at, logging := range elements(spec, "accessLogging", t.AccessLogging) {
		checkEnum(at.child("match").child("mode"), logging.GetMatch().GetMode())
		checkProviders(at, logging.Providers)
		if logging.Filter != nil {
			checkSet(at.child("filter").child("expression"), logging.Filter.Expression, "is required")
		}
	}
}

func checkProviders(at *field, providers []*telemetry.ProviderRef) {
	for place, provider := range elements(at, "providers", providers) {
		checkSet(place.child("name"), provider.Name, "is required")
	}
}

func checkTracing(at *field, tracing *telemetry.Tracing) {
	checkEnum(at.child("match").child("mode"), tracing.GetMatch().GetMode())
	checkProviders(at, tracing.Providers)
	if len(tracing.Providers) > 1 {
		at.child("providers").warn("has %d elements; Istio takes the first only", len(tracing.Providers))
	}
	checkPercent(at.child("randomSamplingPercentage"), tracing.GetRandomSamplingPercentage().GetValue())
	for place, tag := range entries(at, "customTags", tracing.CustomTags) {
		if place.key == "" {
			place.refuse("key must not be empty")
		}
		switch kind := tag.GetType().(type) {
		case *telemetry.Tracing_CustomTag_Literal:
			checkSet(place.child("literal").child("value"), kind.Literal.GetValue(), "is required")
		case *telemetry.Tracing_CustomTag_Environment:
			checkSet(place.child("environment").child("name"), kind.Environment.GetName(), "is required")
		case *telemetry.Tracing_CustomTag_Header:
			checkSet(place.child("header").child("name"), kind.Header.GetName(), "is required")
		case *telemetry.Tracing_CustomTag_Formatter:
			checkSet(place.child("formatter").child("value"), kind.Formatter.GetValue(), "is required")
		default:
			place.warn("has no effect without one of literal, environment, header, formatter")
		}
	}
}

func checkMetrics(at *field, metrics *telemetry.Metrics) {
	checkProviders(at, metrics.Providers)
	checkDuration(at.child("reportingInterval"), metrics.ReportingInterval)
	for place, override := range elements(at, "overrides", metrics.Overrides) {
		checkEnum(place.child("match").child("mode"), override.GetMatch().GetMode())
		switch metric := override.GetMatch().GetMetricMatch().(type) {
		case *telemetry.MetricSelector_Metric:
			checkEnum(place.child("match").child("metric"), metric.Metric)
		case *telemetry.MetricSelector_CustomMetric:
			checkSet(place.child("match").child("customMetric"), metric.CustomMetric, "must not be empty")
		}
		checkTagOverrides(place, override.TagOverrides)
	}
}

func checkTagOverrides(at *field, overrides map[string]*telemetry.MetricsOverrides_TagOverride) {
	for place, override := range entries(at, "tagOverrides", overrides) {
		if place.key == "" {
			place.refuse("key must not be empty")
		}
		if override == nil {
			place.refuse("must not be null")
			continue
		}
		checkEnum(place.child("operation"), override.Operation)
		switch override.Operation {
		case telemetry.MetricsOverrides_TagOverride_UPSERT:
			checkSet(place.child("value"), override.Value, "is required for operation UPSERT")
		case telemetry.MetricsOverrides_TagOverride_REMOVE:
			checkUnset(place.child("value"), override.Value, "must not be set for operation REMOVE")
		}
	}
}
