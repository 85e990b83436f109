// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"go.uber.org/atomic"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pilotkit/pilotkit/internal/test/testserver"
)

// The responses of a service to a check, by its header x-do.
const (
	doAllow = "allow"
	doDeny  = "deny"
	doFail  = "fail"
	doSlow  = "slow" // it responds after the caller has given up
)

// grpcAuthorizer decides about requests by their header x-do, and about connections by lines.
type grpcAuthorizer struct {
	authv3.UnimplementedAuthorizationServer

	lines atomic.String
}

// Check implements authv3.AuthorizationServer.
func (a *grpcAuthorizer) Check(ctx context.Context, r *authv3.CheckRequest) (*authv3.CheckResponse, error) {
	do := a.lines.Load()
	if request := r.GetAttributes().GetRequest().GetHttp(); request != nil {
		do = request.GetHeaders()["x-do"]
	}
	switch do {
	case doAllow:
		return &authv3.CheckResponse{Status: &rpcstatus.Status{}, HttpResponse: &authv3.CheckResponse_OkResponse{OkResponse: &authv3.OkHttpResponse{
			Headers: headerOptions("x-user", "alice"), HeadersToRemove: []string{"x-secret"}, ResponseHeadersToAdd: headerOptions("x-added", "yes"),
		}}}, nil
	case doFail:
		return nil, status.Error(codes.Internal, "on purpose")
	case doSlow:
		<-ctx.Done()
		return nil, ctx.Err()
	default:
		return &authv3.CheckResponse{
			Status: &rpcstatus.Status{Code: int32(codes.PermissionDenied)},
			HttpResponse: &authv3.CheckResponse_DeniedResponse{DeniedResponse: &authv3.DeniedHttpResponse{
				Status: &typev3.HttpStatus{Code: typev3.StatusCode_PaymentRequired}, Headers: headerOptions("x-why", "debts"), Body: "pay",
			}},
		}, nil
	}
}

func headerOptions(name, value string) []*core.HeaderValueOption {
	return []*core.HeaderValueOption{{Header: &core.HeaderValue{Key: name, Value: value}}}
}

// httpAuthorizer decides about requests as grpcAuthorizer does. It is asked below the path /check,
// with one header that it knows the gateway by, and with no header of the request that it does not
// have to know.
func httpAuthorizer(w http.ResponseWriter, r *http.Request) {
	if !strings.HasPrefix(r.URL.Path, "/check/asked") || r.Header.Get("x-gate") != "edge" || r.Header.Get("x-secret") != "" {
		w.WriteHeader(http.StatusTeapot)
		return
	}
	w.Header().Set("x-user", "alice")
	w.Header().Set("x-added", "yes")
	w.Header().Set("x-why", "debts")
	w.Header().Set("x-hidden", "yes")
	switch r.Header.Get("x-do") {
	case doAllow:
	case doFail:
		w.WriteHeader(http.StatusBadGateway)
	case doSlow:
		<-r.Context().Done()
	default:
		w.WriteHeader(http.StatusPaymentRequired)
		_, _ = w.Write([]byte("pay"))
	}
}

// askedService is a service that can be away and come back.
type askedService struct {
	t    *testing.T
	port string
	// serve serves until stop is called.
	serve func(l net.Listener) (stop func())
	leave func()
}

// startAsked runs a service until the test ends, or it leaves.
func startAsked(t *testing.T, serve func(l net.Listener) (stop func())) *askedService {
	t.Helper()
	s := &askedService{t: t, port: "0", serve: serve}
	s.come()
	t.Cleanup(func() { s.leave() })
	return s
}

// come has the service serve, at the address that it had.
func (s *askedService) come() {
	s.t.Helper()
	l := testserver.Listen(s.t, local(s.port))
	s.port = portOf(l)
	s.leave = sync.OnceFunc(s.serve(l))
}

// serveGRPC serves with an authorizer.
func (a *grpcAuthorizer) serveGRPC(l net.Listener) (stop func()) {
	server := grpc.NewServer()
	authv3.RegisterAuthorizationServer(server, a)
	return serving(func() error { return server.Serve(l) }, server.Stop)
}

// serveHTTP serves with httpAuthorizer.
func serveHTTP(l net.Listener) (stop func()) {
	server := &http.Server{Handler: http.HandlerFunc(httpAuthorizer), ReadHeaderTimeout: time.Minute}
	return serving(func() error { return server.Serve(l) }, func() { _ = server.Close() })
}

// serving runs a server, and returns what ends it and waits.
func serving(serve func() error, end func()) (stop func()) {
	var running sync.WaitGroup
	running.Go(func() { _ = serve() }) // ends when stopped
	return func() {
		end()
		running.Wait()
	}
}
