// SPDX-License-Identifier: Apache-2.0

package prometheus

// The names of all metrics. docs/metrics.md lists them; a test compares.
const (
	nameConnectedProxies  = "pilotkit_xds_connected_proxies"
	nameStreamsOpened     = "pilotkit_xds_streams_opened_total"
	nameStreamsClosed     = "pilotkit_xds_streams_closed_total"
	nameStreamsLimited    = "pilotkit_xds_limited_streams_total"
	nameStreamsRefused    = "pilotkit_xds_streams_refused_total"
	nameSubscriptionsSaid = "pilotkit_xds_subscription_requests_total"
	nameAcks              = "pilotkit_xds_acks_total"
	nameNacks             = "pilotkit_xds_nacks_total"
	nameReceivedBytes     = "pilotkit_xds_received_bytes_total"
	nameResponses         = "pilotkit_xds_responses_total"
	nameSentBytes         = "pilotkit_xds_sent_bytes_total"
	nameSentResources     = "pilotkit_xds_sent_resources_total"
	nameRemovedResources  = "pilotkit_xds_removed_resources_total"
	nameConvergence       = "pilotkit_xds_convergence_seconds"
	nameOverdueResponses  = "pilotkit_xds_overdue_responses_total"
	nameResourceFailures  = "pilotkit_xds_resource_failures_total"
	namePanics            = "pilotkit_panics_total"
	namePushes            = "pilotkit_pushes_total"
	namePushRequests      = "pilotkit_push_requests_total"
	namePushDebounce      = "pilotkit_push_debounce_seconds"
	namePushDuration      = "pilotkit_push_duration_seconds"

	nameSubscriptions        = "pilotkit_xds_subscriptions"
	namePendingSubscriptions = "pilotkit_xds_pending_subscriptions"
	nameOverdueSubscriptions = "pilotkit_xds_overdue_subscriptions"
	nameRefusedResources     = "pilotkit_xds_refused_resources"
	nameQuarantinedResources = "pilotkit_xds_quarantined_resources"
	nameFailedResources      = "pilotkit_xds_failed_resources"
	nameQueueRequests        = "pilotkit_push_queue_requests"
	nameQueueWait            = "pilotkit_push_queue_wait_seconds"
	namePushRunning          = "pilotkit_push_running_seconds"
	namePushFailures         = "pilotkit_push_failures_total"
	nameServices             = "pilotkit_services"
	nameEndpoints            = "pilotkit_endpoints"

	nameSourceSynced     = "pilotkit_source_synced"
	nameSourceStale      = "pilotkit_source_stale"
	nameSourceStaleSince = "pilotkit_source_stale_since_timestamp_seconds"
	nameSourceContent    = "pilotkit_source_content_timestamp_seconds"
	nameSourceErrors     = "pilotkit_source_errors"
	nameSourceWarnings   = "pilotkit_source_warnings"

	nameConfigs = "pilotkit_configs"
)

// The names of labels.
const (
	labelCause    = "cause"
	labelCode     = "code"
	labelGroup    = "group"
	labelKind     = "kind"
	labelLimit    = "limit"
	labelPart     = "part"
	labelProtocol = "protocol"
	labelReason   = "reason"
	labelSource   = "source"
	labelTypeURL  = "type_url"
	labelVersion  = "version"
)
