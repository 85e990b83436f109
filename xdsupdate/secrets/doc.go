// SPDX-License-Identifier: Apache-2.0

// Package secrets serves certificates, keys and certificate authorities to Envoys by SDS, over the
// stream that also carries their listeners and clusters.
//
//	secrets := secrets.New(configs, secrets.Options{Function: lookUp})
//	server := ads.New(registries, ads.Options{Providers: []ads.Provider{traffic.New(configs), secrets}})
//	go secrets.Run(stop)
//
// # Names
//
// Secrets have the names that Istio gives them. envoy.ParseSecretName parses the names.
//
//	"kubernetes://NAME"            | certificate and key of a credentialName, in the proxy's namespace
//	"kubernetes://NAMESPACE/NAME"  | the same, in another namespace
//	"kubernetes://…-cacert"        | the authorities of a credentialName
//	"default", "ROOTCA"            | the workload's own certificate, and the authorities of the mesh
//	"file-cert:CERTIFICATE~KEY"    | files on the proxy's host, which the proxy reads itself
//	"file-root:FILE"               | the same; "file-root:system": Options.SystemRoots
//
// A resource exists for each name that Gateways or DestinationRules of the cache
// reference, and for each name in Options.Names and Options.Files. The secret is looked up when a
// proxy subscribes to the name.
//
// # Authorization
//
// A credential is available to proxies of its namespace, and to proxies that Options.Allow admits.
// All other secrets of Options.Files and Options.Function are available to proxies of the namespace
// in the secret's Name. A proxy that may not have a secret gets the same response as for a secret
// that does not exist. The files of "file-cert:" and "file-root:" are never read by this process:
// the proxy is sent their paths. Therefore a user who may write a Gateway cannot read the files of
// the control plane.
//
// Options.Proxy of the ads server determines the namespace of a proxy. A host that serves secrets
// has to authenticate its proxies there.
//
// # Rotation
//
// Run reads the files in use and calls Function and Allow again, every Options.Interval and when
// Changed is called, and pushes the secrets that changed. Proxies use a new secret for new
// connections and keep the existing ones. A secret that proxies would reject is logged and not
// served, and proxies keep the last good one. An example is a certificate that does not match its key
// in the middle of a rotation. The check knows Envoy's rules: Envoy rejects RSA keys of less than
// 2048 bits, curves other than P-256, P-384 and P-521, certificates with the must-staple extension,
// broken PEM blocks and certificates in blocks of other names, anywhere in a chain, revocation lists
// that cannot be read, and authorities under the name of a certificate.
//
// # Slow lookups
//
// A file is read if it is regular and no larger than Options.MaxBytes; for a named pipe or a device,
// the secret has an error. Each lookup, of files or by the function, runs on a goroutine of its own.
// There is one lookup at a time for each secret, and for files that proxies of all namespaces share.
// A wait for a lookup takes at most a second: a proxy that subscribes first gets a response without
// the secret then, and the secret later; Run continues with the other secrets. A lookup that takes
// longer than Options.Timeout is logged once, and proxies keep the last good secret. A lookup that
// never returns costs one goroutine. At most 1000 lookups of secrets, and 1000 calls of
// Options.Allow, run at a time; beyond that limit a lookup fails.
//
// # Confidentiality
//
// Logs and errors contain no part of a key and no value of the function's panics. fmt, log/slog,
// JSON and text encodings of Secret and PrivateKey do not show the key. ads.Server lists the names
// and versions of the resources of proxies, not their contents; a version is a hash of the whole
// secret.
package secrets
