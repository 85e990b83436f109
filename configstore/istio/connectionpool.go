// SPDX-License-Identifier: Apache-2.0

package istio

import networking "istio.io/api/networking/v1alpha3"

// checkConnectionPool checks the limits of a pool; nil is fine.
func checkConnectionPool(at *field, pool *networking.ConnectionPoolSettings) {
	if pool == nil {
		return
	}
	if pool.Tcp == nil && pool.Http == nil {
		at.refuse("must have one of tcp, http")
	}
	if pool.Tcp != nil {
		checkTCPPool(at.child("tcp"), pool.Tcp)
	}
	if pool.Http != nil {
		checkHTTPPool(at.child("http"), pool.Http)
	}
}

func checkTCPPool(at *field, tcp *networking.ConnectionPoolSettings_TCPSettings) {
	checkNotNegative(at.child("maxConnections"), tcp.MaxConnections)
	checkDuration(at.child("connectTimeout"), tcp.ConnectTimeout)
	checkDuration(at.child("maxConnectionDuration"), tcp.MaxConnectionDuration)
	checkDurationOrZero(at.child("idleTimeout"), tcp.IdleTimeout)
	if keepalive := tcp.TcpKeepalive; keepalive != nil {
		checkDuration(at.child("tcpKeepalive").child("time"), keepalive.Time)
		checkDuration(at.child("tcpKeepalive").child("interval"), keepalive.Interval)
	}
}

func checkHTTPPool(at *field, http *networking.ConnectionPoolSettings_HTTPSettings) {
	checkNotNegative(at.child("http1MaxPendingRequests"), http.Http1MaxPendingRequests)
	checkNotNegative(at.child("http2MaxRequests"), http.Http2MaxRequests)
	checkNotNegative(at.child("maxRequestsPerConnection"), http.MaxRequestsPerConnection)
	checkNotNegative(at.child("maxRetries"), http.MaxRetries)
	checkNotNegative(at.child("maxConcurrentStreams"), http.MaxConcurrentStreams)
	checkDuration(at.child("idleTimeout"), http.IdleTimeout)
	checkEnum(at.child("h2UpgradePolicy"), http.H2UpgradePolicy)
	if http.UseClientProtocol && http.H2UpgradePolicy == networking.ConnectionPoolSettings_HTTPSettings_UPGRADE {
		at.child("useClientProtocol").refuse("must not be set together with h2UpgradePolicy UPGRADE")
	}
	if keepalive := http.Http2KeepAlive; keepalive != nil {
		checkRequiredDuration(at.child("http2KeepAlive").child("interval"), keepalive.Interval)
		checkRequiredDuration(at.child("http2KeepAlive").child("timeout"), keepalive.Timeout)
	}
}
