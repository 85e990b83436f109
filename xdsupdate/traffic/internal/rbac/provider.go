// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	httpauthz "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	tcpauthz "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/ext_authz/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	meshconfig "istio.io/api/mesh/v1alpha1"
	security "istio.io/api/security/v1beta1"
)

// A service decides about CUSTOM policies. Their rules are an RBAC filter in shadow mode, which
// records the matching policy. The filter that asks the service is enabled if that policy belongs
// to the service.

// The names of the filters that ask a service.
const (
	HTTPProviderFilter = "envoy.filters.http.ext_authz"
	TCPProviderFilter  = "envoy.filters.network.ext_authz"
)

const (
	providerPrefix = "istio-ext-authz-"
	// matchedPrefix and matchedKey are the metadata in which a filter in shadow mode records the
	// matching policy.
	matchedPrefix = "istio_ext_authz_"
	matchedKey    = "shadow_effective_policy_id"
	// refusedSuffix is the suffix of the names of policies whose provider cannot be asked.
	refusedSuffix = "-deny-due-to-bad-CUSTOM-action"
	// providerTimeout is the timeout of a provider that sets none (S61).
	providerTimeout = 600 * time.Second
)

// Provider is an external authorization service.
type Provider struct {
	Name string
	// Host and Cluster identify the service. They are unused if Err is set.
	Host, Cluster string
	// Exactly one of GRPC and HTTP is set, unless Err is.
	GRPC *meshconfig.MeshConfig_ExtensionProvider_EnvoyExternalAuthorizationGrpcProvider
	HTTP *meshconfig.MeshConfig_ExtensionProvider_EnvoyExternalAuthorizationHttpProvider
	// Err is the reason why it cannot be asked. The matches of its policies are then rejected.
	Err error
}

// Custom returns the policies of a provider as rules: enforced if the provider cannot be asked,
// else in shadow mode, as dry-run policies are.
func (t Translator) Custom(provider Provider, policies []Policy) Rules {
	rules := &rbacv3.RBAC{Action: rbacv3.RBAC_DENY, Policies: make(map[string]*rbacv3.Policy)}
	suffix := ""
	if provider.Err != nil {
		suffix = refusedSuffix
	}
	for _, p := range policies {
		for name, policy := range t.policies(p) {
			rules.Policies[provider.policyPrefix()+name+suffix] = policy
		}
	}
	if provider.Err != nil {
		return Rules{Action: security.AuthorizationPolicy_CUSTOM, Enforced: rules}
	}
	return Rules{Action: security.AuthorizationPolicy_CUSTOM, DryRun: rules}
}

// policyPrefix returns the prefix of the provider's policy names, which is different for each
// provider.
func (p Provider) policyPrefix() string { return providerPrefix + p.Name + "-" }

// matched matches the metadata of a filter in shadow mode if a policy of the provider has matched.
func (p Provider) matched(filter string) *matcher.MetadataMatcher {
	return metadata(filter, []string{matchedPrefix + matchedKey}, textValue(prefix(p.policyPrefix()+"ns[")))
}

// HTTPAuthz returns the configuration of the filter for requests.
func (p Provider) HTTPAuthz() (*httpauthz.ExtAuthz, error) {
	out := &httpauthz.ExtAuthz{TransportApiVersion: core.ApiVersion_V3, FilterEnabledMetadata: p.matched(HTTPFilter)}
	var err error
	switch {
	case p.GRPC != nil:
		g := p.GRPC
		out.Services = &httpauthz.ExtAuthz_GrpcService{GrpcService: p.grpcService()}
		out.FailureModeAllow, out.ClearRouteCache = g.GetFailOpen(), g.GetClearRouteCache()
		out.WithRequestBody = body(g.GetIncludeRequestBodyInCheck())
		out.StatusOnError, err = statusOf(g.GetStatusOnError())
	case p.HTTP != nil:
		h := p.HTTP
		out.Services = &httpauthz.ExtAuthz_HttpService{HttpService: p.httpService()}
		out.FailureModeAllow, out.ClearRouteCache = h.GetFailOpen(), h.GetClearRouteCache()
		out.WithRequestBody = body(h.GetIncludeRequestBodyInCheck())
		out.AllowedHeaders = headers(append(slices.Clone(h.GetIncludeRequestHeadersInCheck()), h.GetIncludeHeadersInCheck()...)) //nolint:staticcheck // still in use
		out.StatusOnError, err = statusOf(h.GetStatusOnError())
		if prefix := h.GetPathPrefix(); prefix != "" && prefix[0] != '/' { // Envoy rejects the listener
			err = cmp.Or(err, fmt.Errorf("pathPrefix: %q does not begin with a slash", prefix))
		}
	}
	return out, err
}

// TCPAuthz returns the configuration of the filter for connections, or nil if the provider supports
// only requests (S43).
func (p Provider) TCPAuthz() *tcpauthz.ExtAuthz {
	if p.GRPC == nil {
		return nil
	}
	return &tcpauthz.ExtAuthz{
		StatPrefix: "tcp.", TransportApiVersion: core.ApiVersion_V3, GrpcService: p.grpcService(),
		FailureModeAllow: p.GRPC.GetFailOpen(), FilterEnabledMetadata: p.matched(TCPFilter),
	}
}

func (p Provider) grpcService() *core.GrpcService {
	return &core.GrpcService{
		TargetSpecifier: &core.GrpcService_EnvoyGrpc_{EnvoyGrpc: &core.GrpcService_EnvoyGrpc{ClusterName: p.Cluster, Authority: p.Host}},
		Timeout:         timeout(p.GRPC.GetTimeout()),
	}
}

func (p Provider) httpService() *httpauthz.HttpService {
	h := p.HTTP
	out := &httpauthz.HttpService{
		PathPrefix: h.GetPathPrefix(),
		ServerUri: &core.HttpUri{
			Uri: "http://" + p.Host, HttpUpstreamType: &core.HttpUri_Cluster{Cluster: p.Cluster}, Timeout: timeout(h.GetTimeout()),
		},
	}
	if add := h.GetIncludeAdditionalHeadersInCheck(); len(add) > 0 {
		out.AuthorizationRequest = &httpauthz.AuthorizationRequest{}
		for _, key := range slices.Sorted(maps.Keys(add)) {
			out.AuthorizationRequest.HeadersToAdd = append(out.AuthorizationRequest.HeadersToAdd, &core.HeaderValue{Key: key, Value: add[key]})
		}
	}
	response := &httpauthz.AuthorizationResponse{
		AllowedUpstreamHeaders:        headers(h.GetHeadersToUpstreamOnAllow()),
		AllowedClientHeaders:          headers(h.GetHeadersToDownstreamOnDeny()),
		AllowedClientHeadersOnSuccess: headers(h.GetHeadersToDownstreamOnAllow()),
	}
	if response.AllowedUpstreamHeaders != nil || response.AllowedClientHeaders != nil || response.AllowedClientHeadersOnSuccess != nil {
		out.AuthorizationResponse = response
	}
	return out
}

func timeout(d *durationpb.Duration) *durationpb.Duration {
	if d == nil {
		return durationpb.New(providerTimeout)
	}
	return d
}

// headers returns a matcher of header names, with a star at the beginning or the end, or nil for no
// names.
func headers(names []string) *matcher.ListStringMatcher {
	if len(names) == 0 {
		return nil
	}
	out := &matcher.ListStringMatcher{}
	for _, name := range names {
		m := text(name)
		m.IgnoreCase = m.GetSafeRegex() == nil
		out.Patterns = append(out.Patterns, m)
	}
	return out
}

func body(b *meshconfig.MeshConfig_ExtensionProvider_EnvoyExternalAuthorizationRequestBody) *httpauthz.BufferSettings {
	if b == nil {
		return nil
	}
	return &httpauthz.BufferSettings{
		MaxRequestBytes: b.GetMaxRequestBytes(), AllowPartialMessage: b.GetAllowPartialMessage(), PackAsBytes: b.GetPackAsBytes(),
	}
}

// statusOf returns the status for clients if the provider fails, or nil for Envoy's default, 403.
func statusOf(code string) (*typev3.HttpStatus, error) {
	if code == "" {
		return nil, nil
	}
	n, err := strconv.ParseInt(strings.TrimSpace(code), 10, 32)
	if err != nil || typev3.StatusCode_name[int32(n)] == "" || n == 0 {
		return nil, fmt.Errorf("statusOnError: %q is not a status", code)
	}
	return &typev3.HttpStatus{Code: typev3.StatusCode(n)}, nil //nolint:gosec // it has a name
}
