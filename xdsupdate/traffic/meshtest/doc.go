// SPDX-License-Identifier: Apache-2.0

// Package meshtest tests the configuration of a mesh: cases in YAML say from whom a request comes
// and how it is to be handled, and a router (package route) decides about it by the resources that
// the proxy is sent.
//
//	cases:
//	- name: testers get the canary
//	  from: {workload: shop, labels: {app: web}}   # or gateway: NAMESPACE, or grpc: NAMESPACE
//	  request: {port: 80, host: cart.shop.svc.cluster.local, path: /cart, headers: {x-user: eve}}
//	  expect: {to: "cart.shop.svc.cluster.local:80/v2", rule: "VirtualService shop/cart, http[0]"}
//	- name: nobody reaches the administration
//	  from: {gateway: ingress, labels: {app: edge}, address: 192.0.2.1}
//	  request: {port: 80, host: shop.example.com, path: /admin}
//	  expect: {denied: AuthorizationPolicy ingress/admin}
//
// Fields of from: gateway, workload or grpc (a namespace), labels, cluster and network of the proxy;
// principal and address of the caller. Fields of request: port, protocol (http, tls or tcp), tls,
// sni, method, host, path, headers, claims. Fields of expect: to or shares, path, host, rule,
// denied, redirect, status, closed, noEffect. Everything that is expected has to hold.
//
// A destination is "HOST:PORT" or "HOST:PORT/SUBSET". Shares are percentages by destination, as in
// shares: {"cart:80/v1": 90, "cart:80/v2": 10}. noEffect is an object, "KIND NAMESPACE/NAME", which
// must not do anything; such a case needs no request.
//
// A case that nothing decides, because no listener, host or rule is about the request, is an error,
// unless it expects a status or closed.
package meshtest
