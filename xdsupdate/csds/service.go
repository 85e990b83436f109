// SPDX-License-Identifier: Apache-2.0

package csds

import (
	"context"
	"errors"
	"fmt"
	"io"

	admin "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pilotkit/pilotkit/internal/options"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// Options are the options of New.
type Options struct {
	// Authorize decides whether a caller may use the service. The context has the caller's peer and
	// metadata. If Authorize returns an error, the call ends with the status of the error.
	// Authorize is called once for each call, on any goroutine. Nil rejects every call.
	Authorize func(ctx context.Context) error
}

// Service is the client status discovery service of a server. Its methods are safe for concurrent
// use.
type Service struct {
	server    *ads.Server
	authorize func(context.Context) error
}

// New returns the service of a server. It panics if the server is nil.
func New(server *ads.Server, opts ...Options) *Service {
	if server == nil {
		panic("csds.New: the server is nil")
	}
	s := &Service{server: server, authorize: options.One("csds.New", opts).Authorize}
	if s.authorize == nil {
		s.authorize = func(context.Context) error {
			return status.Error(codes.PermissionDenied, "nobody may ask: csds.Options.Authorize is nil")
		}
	}
	return s
}

// Register adds the service to a gRPC server.
func (s *Service) Register(server grpc.ServiceRegistrar) {
	statusv3.RegisterClientStatusDiscoveryServiceServer(server, service{s})
}

// service is the gRPC service. It keeps the methods of the gRPC interface out of Service's API.
type service struct{ *Service }

// FetchClientStatus implements the unary method of CSDS.
func (s service) FetchClientStatus(ctx context.Context, r *statusv3.ClientStatusRequest) (*statusv3.ClientStatusResponse, error) {
	if err := s.authorize(ctx); err != nil {
		return nil, err
	}
	return s.answer(ctx, r)
}

// StreamClientStatus implements the streaming method of CSDS: it responds to each request.
func (s service) StreamClientStatus(stream statusv3.ClientStatusDiscoveryService_StreamClientStatusServer) error {
	if err := s.authorize(stream.Context()); err != nil {
		return err
	}
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		answer, err := s.answer(stream.Context(), r)
		if err != nil {
			return err
		}
		if err := stream.Send(answer); err != nil {
			return err
		}
	}
}

func (s service) answer(ctx context.Context, r *statusv3.ClientStatusRequest) (*statusv3.ClientStatusResponse, error) {
	matches, err := newNodeMatcher(r.GetNodeMatchers())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	out := &statusv3.ClientStatusResponse{}
	for p := range s.server.Resources(nil) {
		if err := ctx.Err(); err != nil {
			return nil, status.FromContextError(err).Err()
		}
		if !matches(p.Node) {
			continue
		}
		config, err := clientConfig(p, r.GetExcludeResourceContents())
		if err != nil {
			return nil, status.Error(codes.Internal, err.Error())
		}
		out.Config = append(out.Config, config)
	}
	return out, nil
}

// clientConfig returns the ClientConfig of a stream.
func clientConfig(p ads.ProxyResources, withoutContents bool) (*statusv3.ClientConfig, error) {
	out := &statusv3.ClientConfig{Node: p.Node, ClientScope: fmt.Sprint("stream ", p.Stream.ID)}
	for _, r := range p.Resources {
		config, err := genericConfig(r, withoutContents)
		if err != nil {
			return nil, err
		}
		out.GenericXdsConfigs = append(out.GenericXdsConfigs, config)
	}
	return out, nil
}

// genericConfig returns the GenericXdsConfig of a resource.
func genericConfig(r ads.ProxyResource, withoutContents bool) (*statusv3.ClientConfig_GenericXdsConfig, error) {
	out := &statusv3.ClientConfig_GenericXdsConfig{
		TypeUrl: r.TypeURL, Name: r.Name, VersionInfo: r.Sent.Version(), LastUpdated: timestamp(r.Sent.Made()),
		ConfigStatus: statusv3.ConfigStatus(statusv3.ConfigStatus_value[string(r.Status)]), ClientStatus: clientStatus(r),
		ErrorState: errorState(r),
	}
	if withoutContents {
		return out, nil
	}
	var err error
	out.XdsConfig, err = pack(r.Sent)
	if out.ErrorState != nil {
		out.ErrorState.FailedConfiguration = out.XdsConfig
	}
	return out, err
}

// clientStatus returns the status of a resource from the proxy's point of view.
func clientStatus(r ads.ProxyResource) admin.ClientResourceStatus {
	switch {
	case r.Status == ads.StatusSynced:
		return admin.ClientResourceStatus_ACKED
	case r.Status == ads.StatusError:
		return admin.ClientResourceStatus_NACKED
	case !r.Sent.Exists() && !r.Pending:
		return admin.ClientResourceStatus_DOES_NOT_EXIST
	default:
		return admin.ClientResourceStatus_REQUESTED
	}
}
