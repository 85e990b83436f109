// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotkit/pilotkit/internal/envoycheck"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// TestAbsentSecrets: a SotW Envoy gets one unreadable secret after all existing ones, which stands
// for the missing names. Its NACK of this secret does not count as a rejection.
func TestAbsentSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newRefusalScene(t, secretType, false, map[string]string{"a": "1", "d": "1"})
		told := 0
		s.conn.Close()
		s.conn = s.fixture.client(xdstest.ClientOptions{Node: node("b", "shop"), Answer: func(r xdstest.Response) error {
			for _, res := range r.Resources {
				m, err := res.Message()
				if err == nil {
					err = envoycheck.Envoy(m)
				}
				if err != nil {
					told++
					return errors.New("unreadable")
				}
			}
			return s.client.answer(r)
		}})
		step := func(what string, wantTold int, want map[string]string) {
			t.Helper()
			synctest.Wait()
			check(t, what, s.client.state(secretType), want)
			check(t, what+": told", told, wantTold)
			faults, _ := s.Faults()
			p := s.Proxies()[0].Types[secretType]
			if len(faults) > 0 || p.Rejections > 0 || p.Acked != p.Sent || p.Pending {
				t.Errorf("%s: status = %+v", what, p)
			}
			if err := s.WaitApplied(s.context(), nil); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		s.subscribe(s.conn, secretType, "a", "b", "c", "d")
		step("first", 1, map[string]string{"a": "1", "d": "1"})
		check(t, "order", received(s.conn, 0), []string{secretType + " a", secretType + " d", secretType + " b"})
		s.set(map[string]string{"a": "2"})
		step("another changes", 1, map[string]string{"a": "2", "d": "1"})
		s.set(map[string]string{"b": "1"})
		step("one comes", 1, map[string]string{"a": "2", "b": "1", "d": "1"})
		s.subscribe(s.conn, secretType, "e")
		step("one more is asked for", 2, map[string]string{"a": "2", "b": "1", "d": "1"})
		s.set(map[string]string{"b": ""})
		step("one goes", 2, map[string]string{"a": "2", "b": "1", "d": "1"})
		s.set(map[string]string{"b": "3", "e": "bad"})
		synctest.Wait()
		check(t, "refusals", s.refusals(), []string{"e"})
		s.set(map[string]string{"e": "1"})
		synctest.Wait()
		check(t, "in the end", s.client.state(secretType), map[string]string{"a": "2", "b": "3", "d": "1", "e": "1"})
		check(t, "refusals in the end", s.refusals(), []string{})
	})
}

// TestAbsentSecretsOfOthers: gRPC clients get no unreadable secret.
func TestAbsentSecretsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, ads.Options{})
		n := node("a", "shop")
		n.Metadata = &structpb.Struct{Fields: map[string]*structpb.Value{"GENERATOR": structpb.NewStringValue("grpc")}}
		n.UserAgentName = "gRPC Go"
		c := f.client(xdstest.ClientOptions{Node: n})
		f.subscribe(c, secretType, "a")
		synctest.Wait()
		check(t, "received", received(c, 0), []string{})
	})
}
