// SPDX-License-Identifier: Apache-2.0

package mosn

import (
	"sync"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// inliner puts secrets into the listeners that refer to them, for a proxy that does
// not take secrets over ADS.
type inliner struct {
	mu      sync.Mutex
	secrets map[string]*tlsv3.Secret
}

func (i *inliner) set(name string, s *tlsv3.Secret) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.secrets == nil {
		i.secrets = make(map[string]*tlsv3.Secret)
	}
	i.secrets[name] = s
}

func (i *inliner) get(name string) *tlsv3.Secret {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.secrets[name]
}

// intercept is a grpc.StreamServerInterceptor.
func (i *inliner) intercept(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	return handle(srv, &inliningStream{stream, i})
}

type inliningStream struct {
	grpc.ServerStream
	inline *inliner
}

// SendMsg implements grpc.ServerStream.
func (s *inliningStream) SendMsg(m any) error {
	if r, ok := m.(*discovery.DiscoveryResponse); ok && r.GetTypeUrl() == envoy.ListenerType {
		// The server shares encoded resources between responses, so this is decoded.
		data, err := proto.Marshal(r)
		if err != nil {
			return err
		}
		out := &discovery.DiscoveryResponse{}
		if err := proto.Unmarshal(data, out); err != nil {
			return err
		}
		for n, res := range out.GetResources() {
			changed, err := s.inline.listener(res)
			if err != nil {
				return err
			}
			out.Resources[n] = changed
		}
		m = out
	}
	return s.ServerStream.SendMsg(m)
}

func (i *inliner) listener(res *anypb.Any) (*anypb.Any, error) {
	l := &listenerv3.Listener{}
	if err := res.UnmarshalTo(l); err != nil {
		return nil, err
	}
	for _, chain := range l.GetFilterChains() {
		socket := chain.GetTransportSocket()
		if socket == nil {
			continue
		}
		tls := &tlsv3.DownstreamTlsContext{}
		if err := socket.GetTypedConfig().UnmarshalTo(tls); err != nil {
			return nil, err
		}
		i.context(tls.GetCommonTlsContext())
		if err := socket.GetTypedConfig().MarshalFrom(tls); err != nil {
			return nil, err
		}
	}
	return anypb.New(l)
}

func (i *inliner) context(common *tlsv3.CommonTlsContext) {
	for _, sds := range common.GetTlsCertificateSdsSecretConfigs() {
		common.TlsCertificates = append(common.TlsCertificates, i.get(sds.GetName()).GetTlsCertificate())
	}
	common.TlsCertificateSdsSecretConfigs = nil
	if sds := common.GetCombinedValidationContext().GetValidationContextSdsSecretConfig(); sds != nil {
		common.ValidationContextType = &tlsv3.CommonTlsContext_ValidationContext{
			ValidationContext: i.get(sds.GetName()).GetValidationContext(),
		}
	}
}
