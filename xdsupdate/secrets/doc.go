// SPDX-License-Identifier: Apache-2.0

// Package secrets serves certificates, keys and authorities to Envoys by SDS, over
// the stream on which they have their listeners and clusters.
//
//	secrets := secrets.New(secrets.Options{Function: lookUp})
//	server := ads.New(registries, ads.Options{Configs: snapshot, Generators: []ads.Generator{secrets}})
//	go secrets.Run(server, stop)
//
// # Names
//
// Secrets are named as Istio names them; envoy.ParseSecretName reads the names.
//
//	"kubernetes://NAME"            | certificate and key of a credentialName, in the proxy's namespace
//	"kubernetes://NAMESPACE/NAME"  | the same, in another namespace
//	"kubernetes://…-cacert"        | the authorities of a credentialName
//	"default", "ROOTCA"            | the workload's own certificate, and the authorities of the mesh
//	"file-cert:CERTIFICATE~KEY"    | files of the proxy, which it reads itself
//	"file-root:FILE"               | the same; "file-root:system": Options.SystemRoots
//
// There is a secret under a name if the Gateways or DestinationRules of
// ads.Options.Configs refer to it, or if Options.Names or Options.Files has it. It is
// looked up when a proxy has subscribed to it.
//
// # Who may have what
//
// A credential is for proxies of its namespace, and for those that Options.Allow
// admits. What Options.Files and Options.Function have under other names is for
// proxies of the namespace that it is under. A name that a proxy may not have is
// answered like one that does not exist. The files of "file-cert:" and
// "file-root:" never come from this process: the proxy gets their names, so that
// who may write a Gateway cannot read what this process can.
//
// The namespace of a proxy is what ads.Options.Proxy says: a host with secrets
// authenticates its proxies there.
//
// # Rotation
//
// Run reads the files that are in use and asks the function and Options.Allow again,
// every Options.Interval and when Changed is called, and pushes what has changed: proxies
// take it for new connections and keep the others. A certificate that does not
// belong to its key, as in the middle of a rotation, and anything else that proxies
// would refuse, is logged and not served; what they have stays. What Envoys refuse of a
// secret is known: RSA keys of less than 2048 bits, curves other than P-256, P-384 and
// P-521, certificates that must be stapled, broken blocks of PEM and those under other
// names, anywhere in a chain, and authorities under the name of a certificate.
//
// # What is slow, or hangs
//
// A file is read if it is regular and no larger than Options.MaxBytes; a named pipe
// or a device is an error of its secret. Each secret is read, or the function asked
// for it, by a goroutine of its own, one at a time for a secret and for files that
// proxies of all namespaces share. Nobody waits for it longer than a second: a proxy
// that asks for a secret first is answered without it then, and sent it when it is
// there, and Run goes on with the others. What does not answer within
// Options.Timeout is logged once, and what proxies have stays. What never answers
// costs its one goroutine. There are at most 1000 lookups of secrets at a time, and as
// many calls of Options.Allow; beyond that no further one begins.
//
// # What is never shown
//
// Neither logs nor errors have any part of a key, nor what the function panics with, and Secret and PrivateKey do not
// show it by fmt, log/slog, JSON or text. ads.Server lists the names and versions of
// what proxies have, not contents; the version is a hash of the whole secret.
package secrets
