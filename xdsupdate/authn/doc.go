// SPDX-License-Identifier: Apache-2.0

// Package authn authenticates the clients of a control plane's port: by certificates (mutual TLS)
// whose SPIFFE ID names a namespace and a service account, or by bearer tokens.
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
// TLS has the certificate of the server, its key, and the authorities that issue the certificates
// of clients, from files or from a function. Run reads them again every TLSOptions.Interval. New
// connections use the new ones, and existing connections continue. Sessions are not resumed,
// because they would outlive the authority of the client. Material that cannot be used is logged
// once, and the last good material stays in use. An example is a certificate that does not match
// its key in the middle of a rotation.
//
// A certificate is verified when a connection is made; revocation is not checked. A host that wants
// certificates to be verified again bounds the age of connections (keepalive.ServerParameters,
// MaxConnectionAge): xDS clients keep their resources while they reconnect.
//
// # Identities
//
// The certificate of a client has one URI, its SPIFFE ID, in Istio's form:
//
//	spiffe://TRUST-DOMAIN/ns/NAMESPACE/sa/SERVICE-ACCOUNT
//
// Authenticator.Proxy is for ads.Options.Proxy. It compares the identity with the claims of the xDS
// node. The proxy that it returns is always in the namespace of the identity, even if the node
// claims nothing. Therefore no client sees a resource that is visible only in another namespace.
//
//	claim                                   | where
//	----------------------------------------|------------------------------------------
//	a namespace                             | metadata NAMESPACE, and ".namespace" at the end of
//	                                        | the third part of the ID "type~ip~name.namespace~domain"
//	a service account                       | metadata SERVICE_ACCOUNT
//
// All other attributes of a node are trusted, because no secret depends on them: its type,
// addresses, cluster, network, locality and labels, by which Gateways of all namespaces select
// their proxies. A host that does not trust them wraps Proxy, and changes or rejects the proxy that
// it returns.
//
// Other services on the port call Authenticator.Identity, for instance in csds.Options.Authorize.
//
// # Clients
//
// docs/envoy.md has the bootstrap of an Envoy. The bootstrap of grpc-go has, in xds_servers:
//
//	"channel_creds": [{"type": "tls", "config": {
//		"certificate_file": "tls.crt", "private_key_file": "tls.key", "ca_certificate_file": "ca.crt", "refresh_interval": "60s"
//	}}]
//
// Both read their files again while they run.
//
// # Tokens
//
// With Options.Token, a client without a certificate may authenticate with a token in the metadata
// "authorization: Bearer TOKEN", over TLS. TLSOptions.CertificateOptional lets such clients
// connect. The identity of a client with a certificate is always that of the certificate; its token
// is ignored. No log and no error of this package contains a token, an error of Token or the value
// of its panic.
//
// # Refusals
//
// A rejected client gets a status that names its claim and the identity in its certificate.
// Refusals are counted by Cause: see Authenticator.Refusals. An ads.Server notifies its Observer
// (StreamRefused), and logs each refusal once a minute, however often the client retries.
//
//	Cause                | code              | reason
//	---------------------|-------------------|-----------------------------------------------
//	no_identity          | UNAUTHENTICATED   | neither a verified certificate nor a token
//	certificate          | UNAUTHENTICATED   | one without exactly one valid SPIFFE ID, or an authority's
//	trust_domain         | PERMISSION_DENIED | an identity of another trust domain
//	namespace            | PERMISSION_DENIED | another namespace is claimed
//	service_account      | PERMISSION_DENIED | another service account is claimed
//	token                | UNAUTHENTICATED   | the token is malformed, came without TLS, or is not accepted
//	token_unchecked      | UNAVAILABLE       | Token could not verify the token
//
// A failed TLS handshake is not counted as a refusal: gRPC closes the connection, and the client
// sees the reason.
package authn
