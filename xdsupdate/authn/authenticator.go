// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/pilotkit/pilotkit/internal/loglimit"
	"github.com/pilotkit/pilotkit/internal/options"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// Options are the options of New. The zero value works.
type Options struct {
	// TrustDomains are the trust domains whose identities are accepted. Nil means "cluster.local".
	// Each of Material.Authorities may issue identities of all of them, so a domain with authorities
	// of its own, which must not issue others, needs a port of its own.
	TrustDomains []string
	// Token returns the identity of a token. An empty TrustDomain means the first of TrustDomains.
	// If Token returns an error, the client is rejected without the text of the error. If the
	// error's status, which may be wrapped, is Unavailable, DeadlineExceeded, Canceled,
	// ResourceExhausted or Internal, or if Token panics, the client is asked to retry later.
	// Otherwise the client learns that the token is not accepted.
	//
	// Token is called for each call of Proxy and Identity by a client without a certificate, on
	// any goroutine. An ads.Server also calls it when it reviews its proxies (ReviewProxies), which
	// ends the streams of tokens that are not accepted any more. Token must be quick, so it should
	// cache the results of remote calls. Nil rejects all tokens.
	Token func(ctx context.Context, token string) (Identity, error)
	// Services has the labels of workloads. The labels of a proxy's workload, in the namespace of
	// the proxy, replace the labels in the node. With the discovery that is given to ads.New, this
	// is the behavior of a nil ads.Options.Proxy. With nil, proxies have the labels in their nodes.
	Services registry.ServiceDiscovery
	// Logger receives panics of Token, without the value of the panic. Nil discards them.
	Logger *slog.Logger
}

// Authenticator authenticates clients. Its methods are safe for concurrent use.
type Authenticator struct {
	options Options
	refused refusals
	limiter loglimit.Limiter
}

const defaultTrustDomain = "cluster.local"

// New returns an Authenticator. It panics if there are two Options, or if a trust domain is
// invalid.
func New(opts ...Options) *Authenticator {
	o := options.One("authn.New", opts)
	if o.TrustDomains = slices.Clone(o.TrustDomains); len(o.TrustDomains) == 0 {
		o.TrustDomains = []string{defaultTrustDomain}
	}
	for _, domain := range o.TrustDomains {
		if !consistsOf(domain, maxTrustDomain, isOfTrustDomain) {
			panic("authn.New: " + quote(domain) + " is not a trust domain")
		}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Authenticator{options: o, refused: newRefusals()}
}

// Identity returns the identity of the caller of the RPC with the context ctx. An error is the
// status that the RPC should end with.
func (a *Authenticator) Identity(ctx context.Context) (Identity, error) {
	info, overTLS := tlsOf(ctx)
	var id Identity
	var err error
	if overTLS && len(info.State.PeerCertificates) > 0 {
		id, err = a.ofCertificate(info.State)
	} else {
		id, err = a.ofToken(ctx, overTLS)
	}
	if err != nil {
		return Identity{}, err
	}
	if !slices.Contains(a.options.TrustDomains, id.TrustDomain) {
		return Identity{}, a.refused.refuse(CauseTrustDomain, "the client is %s, and this server knows the trust domains %s only",
			id, strings.Join(a.options.TrustDomains, ", "))
	}
	return id, nil
}

// tlsOf returns the TLS state of the peer of an RPC, false if the connection does not use TLS.
func tlsOf(ctx context.Context) (info credentials.TLSInfo, ok bool) {
	if p, known := peer.FromContext(ctx); known {
		info, ok = p.AuthInfo.(credentials.TLSInfo)
	}
	return info, ok
}

// Proxy authenticates the stream with the context ctx and returns the proxy: the result of
// ads.ProxyOf, in the namespace of the client's identity. Use it as ads.Options.Proxy. An error is
// the status that the stream should end with.
func (a *Authenticator) Proxy(ctx context.Context, node *core.Node) (*registry.Proxy, error) {
	id, err := a.Identity(ctx)
	if err == nil {
		err = a.checkClaims(node, id)
	}
	if err != nil {
		return nil, err
	}
	proxy := ads.ProxyOf(node)
	proxy.Namespace, proxy.Identity = id.Namespace, id.String()
	if a.options.Services != nil {
		if labels := a.options.Services.GetProxyWorkloadLabels(proxy); labels != nil {
			proxy.Labels = labels
		}
	}
	return proxy, nil
}

// checkClaims rejects a node that claims another identity.
func (a *Authenticator) checkClaims(node *core.Node, id Identity) error {
	metadata := func(key string) string { return node.GetMetadata().GetFields()[key].GetStringValue() }
	if claim := metadata("NAMESPACE"); claim != "" && claim != id.Namespace {
		return a.refused.refuse(CauseNamespace, "the proxy claims the namespace %s (metadata NAMESPACE), but it is %s", quote(claim), id)
	}
	if parts := strings.Split(node.GetId(), "~"); len(parts) == 4 {
		// The name of a workload may contain dots, a namespace does not.
		if dot := strings.LastIndexByte(parts[2], '.'); dot >= 0 && parts[2][dot+1:] != id.Namespace {
			return a.refused.refuse(CauseNamespace, "the proxy claims the namespace %s (node ID %s), but it is %s",
				quote(parts[2][dot+1:]), quote(node.GetId()), id)
		}
	}
	if claim := metadata("SERVICE_ACCOUNT"); claim != "" && claim != id.ServiceAccount {
		return a.refused.refuse(CauseServiceAccount, "the proxy claims the service account %s (metadata SERVICE_ACCOUNT), but it is %s", quote(claim), id)
	}
	return nil
}
