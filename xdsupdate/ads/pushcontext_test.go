// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// TestPushContext: a provider reads the services and endpoints that are served together with its
// resources.
func TestPushContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := making{customType, func(view ads.View, push *ads.PushContext) map[string]proto.Message {
			var text []string
			for s := range push.Services() {
				n := push.Endpoints(s.Hostname, s.Attributes.Namespace).Len()
				text = append(text, fmt.Sprintf("%s/%s:%d visible=%d", s.Attributes.Namespace, s.Hostname, n, len(push.ServicesOf(view, s.Hostname))))
			}
			return map[string]proto.Message{"all": wrapperspb.String(strings.Join(text, " "))}
		}}
		f := serve(t, ads.Options{Providers: []ads.Provider{p}}, service("b", "shop"), service("a", "other", exportTo(".")))
		f.flush()
		c := f.client(xdstest.ClientOptions{Delta: true, Node: node("a", "shop")})
		f.subscribe(c, customType, "all")
		f.await(c, customType, "all")
		check(t, "text", texts(c)["all"], "other/a:0 visible=0 shop/b:0 visible=1")
		f.eds("b", "shop", endpoint("10.0.0.1", 80))
		f.waitApplied()
		check(t, "text", texts(c)["all"], "other/a:0 visible=0 shop/b:1 visible=1")
		f.define([]string{"a"}, service("b", "shop"))
		f.waitApplied()
		check(t, "text", texts(c)["all"], "shop/b:1 visible=1")
	})
}
