// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/atomic"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
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

// configReader is the configs of one moment: one, whose name is its state.
type configReader string

func (c configReader) Get(configstore.GroupVersionKind, string, string) *configstore.Config {
	return &configstore.Config{Meta: configstore.Meta{Name: string(c)}}
}

func (c configReader) List(configstore.GroupVersionKind, string) []*configstore.Config { return nil }

// TestConfigsOfThePush: configs are of the same moment as services. Here a registry
// changes both in a batch that comes while a push reads them.
func TestConfigsOfThePush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f *fixture
		var config atomic.String
		define := func(version string) {
			config.Store(version)
			f.define([]string{"a"}, service("a", "shop", func(s *registry.Service) { s.Attributes.Name = version }))
		}
		disturb := false
		p := making{customType, func(_ ads.View, push *ads.PushContext) map[string]proto.Message {
			text := push.Configs().Get(configstore.GroupVersionKind{}, "", "").Name
			for s := range push.Services() {
				text += s.Attributes.Name
			}
			return map[string]proto.Message{"versions": wrapperspb.String(text)}
		}}
		f = serve(t, ads.Options{Providers: []ads.Provider{p}, Configs: func() ads.ConfigReader {
			read := configReader(config.Load())
			if disturb {
				disturb = false
				go f.UpdateBatch(func(xdsupdate.XDSUpdater) { define("3") })
				time.Sleep(time.Millisecond) // until the batch is done, or waits for the push to have read
			}
			return read
		}})
		define("1")
		f.flush()
		var got []string
		c := f.client(xdstest.ClientOptions{Delta: true, Node: node("a", "shop"), Answer: func(r xdstest.Response) error {
			for _, res := range r.Resources {
				m, err := res.Message()
				if err != nil {
					return err
				}
				got = append(got, m.(*wrapperspb.StringValue).GetValue())
			}
			return nil
		}})
		f.subscribe(c, customType, "versions")
		f.await(c, customType, "versions")
		f.waitApplied()
		disturb = true
		f.UpdateBatch(func(xdsupdate.XDSUpdater) { define("2") })
		time.Sleep(time.Second) // both batches and their pushes
		f.waitApplied()
		check(t, "versions of config and service", got, []string{"11", "33"}) // the disturbed read is repeated
	})
}
