// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	"strings"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
)

// TestPackedTextThatIsNotUTF8: a resource that contains a message that cannot be encoded cannot be
// encoded either, and nothing panics.
func TestPackedTextThatIsNotUTF8(t *testing.T) {
	for text, ok := range map[string]bool{"http": true, "\xff": false} {
		l := &listenerv3.Listener{Name: "l", FilterChains: []*listenerv3.FilterChain{{
			Filters: []*listenerv3.Filter{NetworkFilter("hcm", &hcm.HttpConnectionManager{StatPrefix: text})},
		}}}
		_, err := proto.Marshal(l)
		if (err == nil) != ok || !ok && !strings.Contains(err.Error(), "UTF-8") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
