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

// Options for New. The zero value works.
type Options struct {
	// TrustDomains are those whose identities are accepted; nil: "cluster.local".
	TrustDomains []string
	// Token returns who has a token; an empty TrustDomain is the first of TrustDomains. An
	// error refuses the client, which does not get its text: with the status Unavailable,
	// DeadlineExceeded, Canceled, ResourceExhausted or Internal, which it may wrap, or a panic, the
	// client is told to try again later, else that the token is not accepted. It is called
	// for each call of Proxy and Identity of a client without certificate, on any goroutine:
	// by an ads.Server also when that asks again who its proxies are (ReviewProxies), which
	// ends the streams of tokens that are not accepted any more. It must be
	// quick, and so remember what it has asked others. Nil: tokens are not accepted.
	Token func(ctx context.Context, token string) (Identity, error)
	// Services has the labels of workloads: what it knows of those of a proxy, in its
	// namespace, takes the place of what the node says. With the discovery that ads.New has,
	// that is what a nil ads.Options.Proxy does. Nil: labels are those that nodes say.
	Services registry.ServiceDiscovery
	// Logger gets panics of Token, without what it panics with; nil discards.
	Logger *slog.Logger
}

// Authenticator knows who clients are. Its methods may be called from any goroutine.
type Authenticator struct {
	options Options
	refused refusals
	limiter loglimit.Limiter
}

const defaultTrustDomain = "cluster.local"

// New returns an Authenticator. It panics if there are two Options, or if a trust domain
// is none.
func New(opts ...Options) *Authenticator {
	o := options.One("authn.New", opts)
	if o.TrustDomains = slices.Clone(o.TrustDomains); len(o.TrustDomains) == 0 {
		o.TrustDomains = []string{defaultTrustDomain}
	}
	for _, domain := range o.TrustDomains {
		if !consistsOf(domain, maxTrustDomain, isOfTrustDomain) {
			panic("authn.New: " + quote(domain) + " is no trust domain")
		}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Authenticator{options: o, refused: newRefusals()}
}

// Identity returns who has made the call whose context ctx is. An error is the status
// that the call should end with.
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

// tlsOf returns what is known of the peer of a call by TLS; not ok: it does not use it.
func tlsOf(ctx context.Context) (info credentials.TLSInfo, ok bool) {
	if p, known := peer.FromContext(ctx); known {
		info, ok = p.AuthInfo.(credentials.TLSInfo)
	}
	return info, ok
}

// Proxy returns the proxy whose stream has the context and whose node says who it is:
// what ads.ProxyOf returns, in the namespace of its identity. It is for
// ads.Options.Proxy. An error is the status that the stream should end with.
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

// checkClaims refuses a node that says that it is somebody else.
func (a *Authenticator) checkClaims(node *core.Node, id Identity) error {
	metadata := func(key string) string { return node.GetMetadata().GetFields()[key].GetStringValue() }
	if claim := metadata("NAMESPACE"); claim != "" && claim != id.Namespace {
		return a.refused.refuse(CauseNamespace, "the proxy claims the namespace %s (metadata NAMESPACE), but it is %s", quote(claim), id)
	}
	if parts := strings.Split(node.GetId(), "~"); len(parts) == 4 {
		// The name of a workload may have dots, a namespace has none.
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
