// SPDX-License-Identifier: Apache-2.0

// Package authn knows who the clients of a control plane's port are: by certificates
// (mutual TLS) whose SPIFFE ID names a namespace and a service account, or by bearer tokens.
//
//	tls, err := authn.NewTLS(authn.TLSOptions{Files: authn.Files{
//		Certificate: "tls.crt", Key: "tls.key", Authorities: "ca.crt",
//	}})
//	clients := authn.New(authn.Options{TrustDomains: []string{"example.org"}, Services: registries})
//	server := ads.New(registries, ads.Options{Proxy: clients.Proxy})
//	grpcServer := grpc.NewServer(append(ads.ServerOptions(), grpc.Creds(tls.Credentials()))...)
//	go tls.Run(stop)
//
// # TLS
//
// TLS has the certificate of the server, its key, and the authorities that issue the
// certificates of clients, from files or from a function. Run reads them again every
// TLSOptions.Interval. New connections have the new ones, and those that are open go on.
// Sessions are not resumed: they would outlive the authority of the client. What cannot be
// used, such as the half of a rotation, a certificate that does not belong to its key, is
// logged once, and the last good state stays in force.
//
// A certificate is verified when a connection is made; nobody asks whether it was revoked. A program that wants it to be looked at
// again bounds the age of connections (keepalive.ServerParameters, MaxConnectionAge): xDS
// clients keep what they have while they connect again.
//
// # Identities
//
// The certificate of a client has one URI, its SPIFFE ID, in Istio's form:
//
//	spiffe://TRUST-DOMAIN/ns/NAMESPACE/sa/SERVICE-ACCOUNT
//
// Authenticator.Proxy is for ads.Options.Proxy. It compares the identity with what the xDS
// node claims. The proxy that it returns has the namespace of the identity, always, so that
// no client sees what only another namespace may see. A node that claims nothing has it too.
//
//	claim                                   | where
//	----------------------------------------|------------------------------------------
//	a namespace                             | metadata NAMESPACE, and ".namespace" at the end of
//	                                        | the third part of the ID "type~ip~name.namespace~domain"
//	a service account                       | metadata SERVICE_ACCOUNT
//
// Everything else that a node says of itself is no secret's key, and is believed: its type,
// addresses, cluster, network, locality and labels, by which Gateways of all namespaces select
// their proxies. A host to which that matters wraps Proxy, and changes or refuses what it
// returns.
//
// Other services on the port ask Authenticator.Identity, for instance in
// csds.Options.Authorize.
//
// # Clients
//
// docs/envoy.md has the bootstrap of an Envoy. That of grpc-go has, in the xds_servers:
//
//	"channel_creds": [{"type": "tls", "config": {
//		"certificate_file": "tls.crt", "private_key_file": "tls.key", "ca_certificate_file": "ca.crt", "refresh_interval": "60s"
//	}}]
//
// Both read their files again while they run.
//
// # Tokens
//
// With Options.Token clients without a certificate can have a token: the metadata
// "authorization: Bearer TOKEN", over TLS. TLSOptions.CertificateOptional lets them connect.
// A client with a certificate is who that says, and its token is not looked at. No token,
// nor anything that Token answers or panics with, is in a log or an error of this package.
//
// # Refusals
//
// They reach the client as a status that says what was claimed and what the certificate
// says, and are counted by Cause: see Authenticator.Refusals. An ads.Server tells its
// Observer of them (StreamRefused), and logs each once a minute, however often the
// client tries.
//
//	Cause                | code              | why
//	---------------------|-------------------|-----------------------------------------------
//	no_identity          | UNAUTHENTICATED   | neither a verified certificate nor a token
//	certificate          | UNAUTHENTICATED   | one without exactly one valid SPIFFE ID, or an authority's
//	trust_domain         | PERMISSION_DENIED | an identity of another trust domain
//	namespace            | PERMISSION_DENIED | another namespace is claimed
//	service_account      | PERMISSION_DENIED | another service account is claimed
//	token                | UNAUTHENTICATED   | the token is malformed, came without TLS, or is not accepted
//	token_unchecked      | UNAVAILABLE       | Token could not find out
//
// A handshake of TLS that fails is no refusal: gRPC ends such a connection, and the client
// sees why.
package authn
