// SPDX-License-Identifier: Apache-2.0

package headerformat_test

import (
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/internal/envoycheck/headerformat"
)

// accepted returns values that all supported releases accept.
func accepted() []string {
	return []string{
		`%START_TIME(%H(%M))%`, `%START_TIME(%Y)%`, `%%`, `%%%%`, `%REQ(a):18446744073709551615%`, `%REQ(a):0%`, `%REQ(:path)%`,
		`%REQ(:PATH?X)%`, `%REQ(?a)%`, `%REQ(a?)%`, `%REQ(?)%`, `%REQ(a_b-c)%`, "%REQ(!#$&'*+-.^_`|~)%", `%REQ(a%b)%`, `%START_TIME(é)%`,
		`%START_TIME(%10n)%`, `%START_TIME(%EOn)%`, `%START_TIME(%t)%`, `%START_TIME(%)%`, `%START_TIME(%Q)%`, `%START_TIME(%3f)%`,
		`%START_TIME(%10f)%`, `%START_TIME(%f)%`, `%START_TIME(%s)%`, `%START_TIME(%E*S)%`, `%GRPC_STATUS(NUMBER)%`,
		`%GRPC_STATUS(CAMEL_STRING)%`, `%GRPC_STATUS(SNAKE_STRING)%`, `%GRPC_STATUS()%`, `%RESPONSE_CODE_DETAILS(ALLOW_WHITESPACES)%`,
		`%RESPONSE_CODE_DETAILS(x)%`, `%COMMON_DURATION(a:b)%`, `%COMMON_DURATION(a:b:ms)%`, `%COMMON_DURATION(a:b:us)%`,
		`%COMMON_DURATION(a:b:ns)%`, `%COMMON_DURATION(:)%`, `%FILTER_STATE(a)%`, `%FILTER_STATE(a:PLAIN)%`, `%FILTER_STATE(a:TYPED)%`,
		`%FILTER_STATE(a:FIELD:x)%`, `%FILTER_STATE(a:FIELD:x:y)%`, `%FILTER_STATE(a:PLAIN:)%`, `%FILTER_STATE(a:)%`, `%FILTER_STATE(a::)%`,
		`%FILTER_STATE(a:PLAIN):5%`, `%UPSTREAM_FILTER_STATE(a:PLAIN)%`, `%METADATA(DYNAMIC)%`, `%METADATA(DYNAMIC:)%`, `%METADATA(DYNAMIC:a)%`,
		`%METADATA(DYNAMIC:a:b:c)%`, `%METADATA(DYNAMIC:a:b:c):5%`, `%METADATA(CLUSTER:a:b)%`, `%METADATA(ROUTE:a:b)%`,
		`%METADATA(UPSTREAM_HOST:a:b)%`, `%METADATA(LISTENER:a:b)%`, `%METADATA(VIRTUAL_HOST:a:b)%`, `%XFCC_VALUE(by)%`, `%XFCC_VALUE(BY)%`,
		`%XFCC_VALUE(hash)%`, `%XFCC_VALUE(cert)%`, `%XFCC_VALUE(chain)%`, `%XFCC_VALUE(Subject)%`, `%XFCC_VALUE(uri)%`, `%XFCC_VALUE(dns)%`,
		`%XFCC_VALUE(uri):5%`, `%PATH(WQ)%`, `%PATH(NQ)%`, `%PATH(WQ:ORIG)%`, `%PATH(WQ:PATH)%`, `%PATH(WQ:ORIG_OR_PATH)%`, `%PATH(WQ:)%`,
		`%PATH(:ORIG)%`, `%PATH(NQ:PATH:x)%`, `%PATH(NQ:PATH):5%`, `%PATH(:)%`, `%QUERY_PARAM(a)%`, `%QUERY_PARAM(é)%`, `%QUERY_PARAM(a b)%`,
		`%QUERY_PARAM(a):5%`, `%%ENVIRONMENT(HOME)%%`, `%DYNAMIC_METADATA(a)%`,
		`%DYNAMIC_METADATA(a:b:c)%`, `%DYNAMIC_METADATA(["a","b"])%`, `%DYNAMIC_METADATA(["a", "b"])%`, `%DYNAMIC_METADATA(["a")%`,
		`%DYNAMIC_METADATA([])%`, `%DYNAMIC_METADATA([1])%`, `%UPSTREAM_METADATA(["a","b"])%`, `%UPSTREAM_METADATA([x])%`,
		`%UPSTREAM_METADATA( ["a","b"])%`, `%UPSTREAM_METADATA({"a":1})%`, `%CLUSTER_METADATA(["a","b"])%`, `%PER_REQUEST_STATE(a)%`,
		`%PER_REQUEST_STATE(["a"])%`, `a %PER_REQUEST_STATE(a)%`, `%DYNAMIC_METADATA(a:b)% %UPSTREAM_METADATA(["a","b"])%`,
		`x%UPSTREAM_METADATA(["a","b"])%`, `%UPSTREAM_METADATA("a","b")%`, `%UPSTREAM_METADATA([ "a","b"])%`, `%UPSTREAM_METADATA(["a","b)%`,
		`%UPSTREAM_METADATA([)%`, `%CEL(request.path)%`, `%CEL(request.headers["a-b"])%`, `%CEL(request.headers['a'])%`,
		`%CEL(foo)%`, `%CEL(request.headers.a):5%`,
		`%CEL(request.time)%`,
		`%START_TIME%%HOSTNAME%`, `%HOSTNAME()%`,

		`%CEL(__result__)%`, `%CEL(a.size)%`, `%CEL(request)%`,
		`%CEL(int)%`, `%REQ(:foo)%`, `%REQ(:a!)%`, `%REQ(:_)%`, `%REQ(a?:b)%`, `%DYNAMIC_METADATA(["a:b"])%`,
		`%PER_REQUEST_STATE(a:FIELD)%`, `plain`, `100%%`,
		// Commands without arguments.
		`%ACCESS_LOG_TYPE%`, `%BYTES_RECEIVED%`, `%BYTES_RETRANSMITTED%`, `%BYTES_SENT%`, `%CONNECTION_ID%`, `%CONNECTION_TERMINATION_DETAILS%`,
		`%CUSTOM_FLAGS%`, `%DOWNSTREAM_DECOMPRESSED_HEADER_BYTES_RECEIVED%`, `%DOWNSTREAM_DECOMPRESSED_HEADER_BYTES_SENT%`,
		`%DOWNSTREAM_DIRECT_LOCAL_ADDRESS%`, `%DOWNSTREAM_DIRECT_LOCAL_ADDRESS_WITHOUT_PORT%`, `%DOWNSTREAM_DIRECT_LOCAL_PORT%`,
		`%DOWNSTREAM_DIRECT_REMOTE_ADDRESS%`, `%DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT%`, `%DOWNSTREAM_DIRECT_REMOTE_PORT%`,
		`%DOWNSTREAM_HANDSHAKE_DURATION%`, `%DOWNSTREAM_HEADER_BYTES_RECEIVED%`, `%DOWNSTREAM_HEADER_BYTES_SENT%`, `%DOWNSTREAM_LOCAL_ADDRESS%`,
		`%DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT%`, `%DOWNSTREAM_LOCAL_DNS_SAN%`, `%DOWNSTREAM_LOCAL_EMAIL_SAN%`, `%DOWNSTREAM_LOCAL_IP_SAN%`,
		`%DOWNSTREAM_LOCAL_OTHERNAME_SAN%`, `%DOWNSTREAM_LOCAL_PORT%`, `%DOWNSTREAM_LOCAL_SUBJECT%`, `%DOWNSTREAM_LOCAL_URI_SAN%`,
		`%DOWNSTREAM_PEER_CERT%`, `%DOWNSTREAM_PEER_CERT_V_END%`, `%DOWNSTREAM_PEER_CERT_V_START%`, `%DOWNSTREAM_PEER_CHAIN_FINGERPRINTS_1%`,
		`%DOWNSTREAM_PEER_CHAIN_FINGERPRINTS_256%`, `%DOWNSTREAM_PEER_CHAIN_SERIALS%`, `%DOWNSTREAM_PEER_DNS_SAN%`,
		`%DOWNSTREAM_PEER_EMAIL_SAN%`, `%DOWNSTREAM_PEER_FINGERPRINT_1%`, `%DOWNSTREAM_PEER_FINGERPRINT_256%`, `%DOWNSTREAM_PEER_IP_SAN%`,
		`%DOWNSTREAM_PEER_ISSUER%`, `%DOWNSTREAM_PEER_OTHERNAME_SAN%`, `%DOWNSTREAM_PEER_SERIAL%`, `%DOWNSTREAM_PEER_SUBJECT%`,
		`%DOWNSTREAM_PEER_URI_SAN%`, `%DOWNSTREAM_REMOTE_ADDRESS%`, `%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%`, `%DOWNSTREAM_REMOTE_PORT%`,
		`%DOWNSTREAM_TLS_CIPHER%`, `%DOWNSTREAM_TLS_SESSION_ID%`, `%DOWNSTREAM_TLS_VERSION%`, `%DOWNSTREAM_TRANSPORT_FAILURE_REASON%`,
		`%DOWNSTREAM_WIRE_BYTES_RECEIVED%`, `%DOWNSTREAM_WIRE_BYTES_SENT%`, `%DURATION%`, `%EMIT_TIME%`, `%EMIT_TIME_LOCAL%`,
		`%FILTER_CHAIN_NAME%`, `%GRPC_STATUS%`, `%GRPC_STATUS_NUMBER%`, `%HOSTNAME%`, `%LOCAL_REPLY_BODY%`, `%PACKETS_RETRANSMITTED%`, `%PATH%`,
		`%PROTOCOL%`, `%REQUESTED_SERVER_NAME%`, `%REQUEST_DURATION%`, `%REQUEST_HEADERS_BYTES%`, `%REQUEST_TX_DURATION%`, `%RESPONSE_CODE%`,
		`%RESPONSE_CODE_DETAILS%`, `%RESPONSE_DURATION%`, `%RESPONSE_FLAGS%`, `%RESPONSE_FLAGS_LONG%`, `%RESPONSE_HEADERS_BYTES%`,
		`%RESPONSE_TRAILERS_BYTES%`, `%RESPONSE_TX_DURATION%`, `%ROUNDTRIP_DURATION%`, `%ROUTE_NAME%`, `%START_TIME%`, `%START_TIME_LOCAL%`,
		`%STREAM_ID%`, `%TLS_JA3_FINGERPRINT%`, `%TLS_JA4_FINGERPRINT%`, `%TRACE_ID%`, `%UNIQUE_ID%`, `%UPSTREAM_CLUSTER%`,
		`%UPSTREAM_CLUSTER_RAW%`, `%UPSTREAM_CONNECTION_ID%`, `%UPSTREAM_CONNECTION_POOL_READY_DURATION%`,
		`%UPSTREAM_DECOMPRESSED_HEADER_BYTES_RECEIVED%`, `%UPSTREAM_DECOMPRESSED_HEADER_BYTES_SENT%`, `%UPSTREAM_HEADER_BYTES_RECEIVED%`,
		`%UPSTREAM_HEADER_BYTES_SENT%`, `%UPSTREAM_HOST%`, `%UPSTREAM_HOST_NAME%`, `%UPSTREAM_HOST_NAME_WITHOUT_PORT%`,
		`%UPSTREAM_LOCAL_ADDRESS%`, `%UPSTREAM_LOCAL_ADDRESS_WITHOUT_PORT%`, `%UPSTREAM_LOCAL_DNS_SAN%`, `%UPSTREAM_LOCAL_IP_SAN%`,
		`%UPSTREAM_LOCAL_PORT%`, `%UPSTREAM_LOCAL_URI_SAN%`, `%UPSTREAM_PEER_CERT%`, `%UPSTREAM_PEER_CERT_V_END%`,
		`%UPSTREAM_PEER_CERT_V_START%`, `%UPSTREAM_PEER_DNS_SAN%`, `%UPSTREAM_PEER_IP_SAN%`, `%UPSTREAM_PEER_ISSUER%`, `%UPSTREAM_PEER_SUBJECT%`,
		`%UPSTREAM_PEER_URI_SAN%`, `%UPSTREAM_PROTOCOL%`, `%UPSTREAM_REMOTE_ADDRESS%`, `%UPSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%`,
		`%UPSTREAM_REMOTE_PORT%`, `%UPSTREAM_REQUEST_ATTEMPT_COUNT%`, `%UPSTREAM_TLS_CIPHER%`, `%UPSTREAM_TLS_SESSION_ID%`,
		`%UPSTREAM_TLS_VERSION%`, `%UPSTREAM_TRANSPORT_FAILURE_REASON%`, `%UPSTREAM_WIRE_BYTES_RECEIVED%`, `%UPSTREAM_WIRE_BYTES_SENT%`,
		`%VIRTUAL_CLUSTER_NAME%`,
		"%REQ(" + strings.Repeat("a", 16000) + ")%",
	}
}

// refused returns values that at least one of the releases rejects.
func refused() []string {
	return []string{
		`%REQ(a)b)%`, `%START_TIME(%Y)%)%`, `%REQ(a):5x%`, `%REQ (a)%`, `% REQ%`, `%REQ(a%`, `%`, `a%`, `%%%`, `%req(a)%`, `%REQ(a)%%`,
		`%REQ(a):99999999999999999999%`, `%REQ(a):18446744073709551616%`, `%REQ(a):-1%`, `%REQ(a):%`, `%REQ(:)%`, `%REQ(a:b)%`, `%REQ(::a)%`,
		`%REQ(??)%`, `%REQ( a)%`, `%REQ(a b)%`, `%REQ(a,b)%`, `%REQ((a)%`, `%REQ(a()%`, `%REQ(a])%`, `%REQ({})%`, `%REQ("a")%`, `%REQ(a/b)%`,
		`%REQ(a	b)%`, `%TRAILER(é)%`, `%RESP(a?é)%`, `%STREAM_INFO_REQ(é)%`, `%START_TIME(%n)%`, `%START_TIME(%-n)%`, `%START_TIME(%_0^#12En)%`,
		`%START_TIME(%0n)%`, `%START_TIME(%On)%`, `%START_TIME(%%n)%`, `%START_TIME_LOCAL(%n)%`, `%EMIT_TIME(%n)%`, `%EMIT_TIME_LOCAL(%n)%`,
		`%DOWNSTREAM_PEER_CERT_V_START(%n)%`, `%DOWNSTREAM_PEER_CERT_V_END(%n)%`, `%UPSTREAM_PEER_CERT_V_START(%n)%`,
		`%UPSTREAM_PEER_CERT_V_END(%n)%`, `%GRPC_STATUS(number)%`, `%GRPC_STATUS(CAMEL_STRING):3%`, `%COMMON_DURATION(a:b:s)%`,
		`%COMMON_DURATION(a:b:)%`, `%COMMON_DURATION(::)%`, `%COMMON_DURATION(a:b:ms:x)%`, `%COMMON_DURATION(a:b:MS)%`,
		`%FILTER_STATE(a:FIELD)%`, `%FILTER_STATE(a:FIELD:)%`, `%FILTER_STATE(a:PLAIN:x)%`, `%FILTER_STATE(a::x)%`, `%FILTER_STATE(:PLAIN)%`,
		`%FILTER_STATE(a:plain)%`, `%METADATA(LISTENER_FILTER_CHAIN:a:b)%`, `%METADATA(FILTER_CHAIN:a:b)%`, `%METADATA(dynamic:a:b)%`,
		`%METADATA(:a)%`, `%XFCC_VALUE(foo)%`, `%PATH(X)%`, `%PATH(WQ:FOO)%`, `%PATH(wq)%`, `%UPSTREAM_METADATA(["a","b"]):5%`, `%CEL(foo())%`,
		`%CEL( )%`, `%CEL()%`, `%CEL(x matches "(")%`,

		`%CEL(a.in)%`,
		`%HOSTNAME(a)%`, `%PROTOCOL:2%`, `%CEL(1+)%`, `%FILE_CONTENT(x)%`, `%METADATA(FOO:a:b)%`, `%REQ(a?b?c)%`, `%REQ(é)%`,
		`%DYNAMIC_METADATA([""])%`, `%PER_REQUEST_STATE(a:b)%`, `%PER_REQUEST_STATE(a):5%`, `%METADATA(LISTENER_FILTER_CHAIN:a)%`,
		// Commands that need arguments, or that the oldest release does not have.
		`%PER_REQUEST_STATE%`, `%FOO%`, `%LISTENER_NAME%`, `%COALESCE%`, `%DOWNSTREAM_CX_RTT%`, `%DOWNSTREAM_DETECTED_CLOSE_TYPE%`,
		`%DOWNSTREAM_DIRECT_LOCAL_ADDRESS_ENDPOINT_ID%`, `%DOWNSTREAM_LOCAL_ADDRESS_ENDPOINT_ID%`, `%DOWNSTREAM_LOCAL_CLOSE_REASON%`,
		`%DOWNSTREAM_PEER_ISSUER_FINGERPRINT_256%`, `%DOWNSTREAM_PEER_ISSUER_SERIAL%`, `%DOWNSTREAM_TLS_GROUP%`, `%QUERY_PARAMS%`,
		`%REQUEST_HEADER%`, `%RESPONSE_HEADER%`, `%RESPONSE_TRAILER%`, `%ROUTE_RESOLUTION_COUNT%`, `%ROUTE_RESOLUTION_TIME_US%`, `%SPAN_ID%`,
		`%UPSTREAM_CONNECTION_IDS_ATTEMPTED%`, `%UPSTREAM_DETECTED_CLOSE_TYPE%`, `%UPSTREAM_HOSTS_ATTEMPTED%`,
		`%UPSTREAM_HOSTS_ATTEMPTED_WITHOUT_PORT%`, `%UPSTREAM_HOST_NAMES_ATTEMPTED%`, `%UPSTREAM_HOST_NAMES_ATTEMPTED_WITHOUT_PORT%`,
		`%UPSTREAM_LOCAL_CLOSE_REASON%`, `%UPSTREAM_REMOTE_ADDRESS_ENDPOINT_ID%`, `%UPSTREAM_SERVER_NAME%`, `%UPSTREAM_TLS_GROUP%`,
	}
}

// stricter returns values that Envoys accept and Check rejects, for the reasons in the package
// comment.
func stricter() []string {
	return []string{
		`%ENVIRONMENT(HOME)%`, `%ENVIRONMENT(é):2%`, `%REQ(a)%%ENVIRONMENT(a=b)%`, `%UPSTREAM_METADATA(["a%","b"])%`,
		`%CEL(1)%`, `%CEL(true)%`, `%CEL(a.if)%`, `%CEL(size("a"))%`, `%CEL('%')%`, `%CEL(a['b'].c)%`, `%CEL(a[0])%`, `%CEL(a ? b : c)%`,
		"%CEL(a" + strings.Repeat(".b", 25) + ")%",
	}
}

func TestCheck(t *testing.T) {
	for _, value := range accepted() {
		if err := headerformat.Check(value); err != nil {
			t.Errorf("%q: %v", value, err)
		}
	}
	for _, value := range append(refused(), stricter()...) {
		if headerformat.Check(value) == nil {
			t.Errorf("%q is accepted", value)
		}
	}
}

// TestErrors: an error contains the command and Envoy's words.
func TestErrors(t *testing.T) {
	for value, want := range map[string]string{
		"50% off 20%":         "Couldn't find valid command at position 2: a command is %COMMAND% or %COMMAND(argument):length%, a percent sign %%",
		"a %FOO%":             "%FOO%: Not supported field in StreamInfo: FOO",
		"%LISTENER_NAME%":     "%LISTENER_NAME%: Not supported field in StreamInfo: LISTENER_NAME, by releases of Envoy before 1.40",
		"%REQ()%":             "%REQ()%: REQ requires parameters",
		"%ENVIRONMENT(HOME)%": "%ENVIRONMENT(HOME)%: ENVIRONMENT shows the environment of the proxy's process, which may hold secrets",
		"%HOSTNAME(a)%":       "%HOSTNAME(a)%: HOSTNAME does not take any parameters or length",
		"%START_TIME(%Y):2%":  "%START_TIME(%Y):2%: START_TIME does not allow length to be specified",
		"%REQ(a?b?c)%":        "%REQ(a?b?c)%: More than 1 alternative header specified in token: a?b?c",
		"%REQ(é)%":            "%REQ(é)%: Invalid header configuration. Format string contains invalid characters",
		"%METADATA(FOO:a:b)%": "%METADATA(FOO:a:b)%: FOO is not supported type of metadata",
		"%CEL(1+)%":           "%CEL(1+)%: only attributes are supported in CEL, such as request.headers['x-user']",
		"%CEL(a[b])%":         "%CEL(a[b])%: the key of an attribute must be a quoted text followed by a bracket, such as ['x-user']",
	} {
		got := ""
		if err := headerformat.Check(value); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %q, want %q", value, got, want)
		}
	}
}

// FuzzCheck: Check does not panic, and an accepted value is also accepted twice, with text around
// it.
func FuzzCheck(f *testing.F) {
	for _, value := range append(accepted(), refused()...) {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		if headerformat.Check(value) == nil && headerformat.Check("a "+value+" %HOSTNAME% "+value) != nil {
			t.Errorf("%q is accepted, but not twice", value)
		}
	})
}
