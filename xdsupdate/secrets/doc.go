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
// Run reads the files that are in use and asks the function again, every
// Options.Interval and when Changed is called, and pushes what has changed: proxies
// take it for new connections and keep the others. A certificate that does not
// belong to its key, as in the middle of a rotation, and anything else that proxies
// would refuse, is logged and not served; what they have stays.
//
// # What is never shown
//
// Neither logs nor errors have any part of a key, and Secret and PrivateKey do not
// show it by fmt, log/slog, JSON or text. ads.Server lists the names and versions of
// what proxies have, not contents; the version is a hash of the whole secret.
package secrets
