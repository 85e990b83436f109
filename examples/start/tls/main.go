// SPDX-License-Identifier: Apache-2.0

// Command tls serves certificates to proxies that it knows by their own certificates. A gateway
// receives the certificate of its credentialName, and the next one when it is rotated; a proxy of
// another namespace receives none, and one that claims another namespace is refused.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log"
	"net"
	"sync"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"go.uber.org/atomic"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/authn"
	"github.com/pilotkit/pilotkit/xdsupdate/secrets"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// credential is the name that a Gateway would have as its credentialName.
const credential = "kubernetes://shop-cert"

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	issuer := newAuthority()

	// The certificates of the shop: in your program, of a vault, of files or of Kubernetes' Secrets.
	var current atomic.Pointer[secrets.Secret]
	current.Store(issuer.secret("first.shop.example.com"))
	certificates := secrets.New(memory.NewController(memory.Make(istio.Schemas())), secrets.Options{
		Names:    []string{credential}, // Gateways in the store name theirs
		Interval: -1,                   // a vault tells of changes, see below
		Function: func(name secrets.Name) (*secrets.Secret, error) {
			if name == (secrets.Name{Namespace: "shop", Name: credential}) {
				return current.Load(), nil
			}
			return nil, secrets.ErrNotFound
		},
	})

	// The port of the control plane: mutual TLS, and identities from the certificates of clients.
	port, err := authn.NewTLS(authn.TLSOptions{Function: func() (*authn.Material, error) {
		return &authn.Material{Certificate: issuer.issue("localhost"), Authorities: issuer.pool()}, nil
	}})
	check(err)
	clients := authn.New(authn.Options{TrustDomains: []string{"example.com"}})
	server := ads.New(aggregate.NewController(), ads.Options{Providers: []ads.Provider{certificates}, Proxy: clients.Proxy})
	address, stop := serve(ctx, server, port, certificates)
	defer stop()

	gateway, closeGateway := issuer.client(ctx, address, "shop", "shop")
	defer closeGateway()
	fmt.Println("shop:", await(ctx, gateway, "first.shop.example.com"))
	current.Store(issuer.secret("second.shop.example.com"))
	certificates.Changed()
	fmt.Println("shop, rotated:", await(ctx, gateway, "second.shop.example.com"))

	other, closeOther := issuer.client(ctx, address, "bank", "bank")
	defer closeOther()
	response, err := other.Next(ctx)
	check(err)
	fmt.Println("bank:", len(response.Resources), "certificates, removed:", response.Removed)

	impostor, closeImpostor := issuer.client(ctx, address, "bank", "shop")
	defer closeImpostor()
	_, err = impostor.Next(ctx)
	fmt.Println("bank, which claims to be shop:", status.Code(err))
}

// await returns the name in the certificate that a client has as soon as it is a given one.
func await(ctx context.Context, client *xdstest.Client, name string) (got string) {
	check(client.Await(ctx, func(s xdstest.State) bool {
		message, err := s.Resources(secrets.Type)[credential].Message()
		secret, _ := message.(*tlsv3.Secret)
		block, _ := pem.Decode(secret.GetTlsCertificate().GetCertificateChain().GetInlineBytes())
		if err != nil || block == nil {
			return false
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		check(err)
		got = certificate.DNSNames[0]
		return got == name
	}))
	return got
}

// client connects with the certificate of a service account in a namespace, and claims one.
func (a *authority) client(ctx context.Context, address, namespace, claimed string) (client *xdstest.Client, closeAll func()) {
	own := a.issue("spiffe://example.com/ns/" + namespace + "/sa/gateway")
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{own}, RootCAs: a.pool(), ServerName: "localhost", MinVersion: tls.VersionTLS13,
	})))
	check(err)
	node := &core.Node{Id: "router~10.0.0.1~gateway." + claimed + "~" + claimed + ".svc.cluster.local"}
	client = xdstest.NewClient(conn, xdstest.ClientOptions{Node: node, Delta: true})
	check(client.Connect(ctx))
	check(client.Subscribe(secrets.Type, credential))
	return client, func() {
		client.Close()
		check(conn.Close())
	}
}

// serve serves xDS on a free port until stop is called.
func serve(ctx context.Context, server *ads.Server, port *authn.TLS, certificates *secrets.Provider) (address string, stop func()) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	check(err)
	grpcServer := grpc.NewServer(append(ads.ServerOptions(), grpc.Creds(port.Credentials()))...)
	server.Register(grpcServer)
	ended := make(chan struct{})
	var running sync.WaitGroup
	for _, run := range []func(<-chan struct{}){server.Run, certificates.Run, port.Run} {
		running.Go(func() { run(ended) })
	}
	running.Go(func() { _ = grpcServer.Serve(listener) }) // it returns when it is stopped
	return listener.Addr().String(), func() {
		grpcServer.Stop()
		close(ended)
		running.Wait()
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
