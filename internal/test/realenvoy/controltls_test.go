// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	bootstrap "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"go.uber.org/atomic"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	issuing "github.com/pilotkit/pilotkit/internal/test/authority"
	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/authn"
)

const (
	controlPlane = "control-plane.example.com"
	edgeIdentity = "spiffe://example.org/ns/ingress/sa/edge"
)

// volume is a directory of certificates that rotates as volumes of Kubernetes do.
type volume struct {
	t        *testing.T
	dir      string
	versions int
}

func newVolume(t *testing.T) *volume {
	t.Helper()
	v := &volume{t: t, dir: t.TempDir()}
	for _, name := range []string{"tls.crt", "tls.key", "ca.crt"} {
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(v.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return v
}

// rotate issues a certificate for a name, and trusts some authorities, from now on. It
// returns the number of the certificate.
func (v *volume) rotate(name string, issuer *issuing.Authority, trusted ...*issuing.Authority) (serial string) {
	v.t.Helper()
	v.versions++
	version := fmt.Sprint("..", v.versions)
	if err := os.Mkdir(filepath.Join(v.dir, version), 0o700); err != nil {
		v.t.Fatal(err)
	}
	certificate, key := issuer.Issue(name)
	var authorities []byte
	for _, a := range trusted {
		authorities = append(authorities, a.PEM()...)
	}
	for file, data := range map[string][]byte{"tls.crt": certificate, "tls.key": key, "ca.crt": authorities} {
		if err := os.WriteFile(filepath.Join(v.dir, version, file), data, 0o600); err != nil {
			v.t.Fatal(err)
		}
	}
	link := filepath.Join(v.dir, "..data")
	if err := errors.Join(os.Symlink(version, link+"_tmp"), os.Rename(link+"_tmp", link)); err != nil {
		v.t.Fatal(err)
	}
	return serialOf(v.t, certificate)
}

// files are the files of the volume that a control plane reads.
func (v *volume) files() authn.Files {
	return authn.Files{
		Certificate: filepath.Join(v.dir, "tls.crt"), Key: filepath.Join(v.dir, "tls.key"), Authorities: filepath.Join(v.dir, "ca.crt"),
	}
}

// checked is a control plane that knows its clients.
type checked struct {
	*plane
	tls     *authn.TLS
	clients *authn.Authenticator
	// serial is that of the certificate of the last client that was let in.
	serial atomic.String
}

func startChecked(t *testing.T, v *volume, address string) *checked {
	t.Helper()
	c := &checked{clients: authn.New(authn.Options{TrustDomains: []string{"example.org"}})}
	var err error
	if c.tls, err = authn.NewTLS(authn.TLSOptions{Files: v.files(), Interval: -1}); err != nil {
		t.Fatal(err)
	}
	c.plane = startPlane(t, planeOptions{
		address: address, ads: ads.Options{Proxy: c.proxy}, grpc: append(ads.ServerOptions(), grpc.Creds(c.tls.Credentials())),
	})
	return c
}

func (c *checked) proxy(ctx context.Context, node *core.Node) (*registry.Proxy, error) {
	proxy, err := c.clients.Proxy(ctx, node)
	if err == nil {
		p, _ := peer.FromContext(ctx)
		c.serial.Store(p.AuthInfo.(credentials.TLSInfo).State.PeerCertificates[0].SerialNumber.String())
	}
	return proxy, err
}

// again takes the place of the control plane, with its configs.
func (c *checked) again() {
	c.TB.Helper()
	c.Stop()
	c.plane = startPlane(c.TB, c.plane.again())
}

// documentedTLS returns the bootstrap of the gateway in docs/envoy.md with TLS as it says
// there, for an Envoy that has a volume of certificates.
func documentedTLS(t *testing.T, v *volume, replace ...string) *bootstrap.Bootstrap {
	t.Helper()
	own := t.TempDir()
	replace = append(replace, "/etc/envoy", own, "/etc/certs", v.dir)
	blocks := documentedBlocks(t, replace...)
	for i, name := range []string{"xds-certificate.json", "xds-authorities.json"} {
		if err := os.WriteFile(filepath.Join(own, name), blocks[3+i], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	gateway, tls := &bootstrap.Bootstrap{}, &clusterv3.Cluster{}
	if err := errors.Join(protojson.Unmarshal(blocks[0], gateway), protojson.Unmarshal(blocks[2], tls)); err != nil {
		t.Fatal(err)
	}
	proto.Merge(gateway.StaticResources.Clusters[0], tls)
	return gateway
}

// TestDocumentedTLS: Envoys reach the server by mutual TLS as docs/envoy.md says, with
// both protocols and the newest and the oldest release. Their certificates and the server's
// are rotated while they run, to another authority.
func TestDocumentedTLS(t *testing.T) {
	for _, program := range envoyproxy.Programs(t) {
		for _, protocol := range []string{"DELTA_GRPC", "GRPC"} {
			t.Run(program.String()+"/"+protocol, func(t *testing.T) { testDocumentedTLS(t, program, protocol) })
		}
	}
}

func testDocumentedTLS(t *testing.T, program envoyproxy.Program, protocol string) {
	t.Helper()
	old, next := issuing.New(t), issuing.New(t)
	ofServer, ofEnvoy := newVolume(t), newVolume(t)
	ofServer.rotate(controlPlane, old, old)
	serial := ofEnvoy.rotate(edgeIdentity, old, old, next)
	ports := envoyproxy.FreePorts(t, 2)
	c := startChecked(t, ofServer, local(strconv.Itoa(int(ports[1]))))
	c.answer(ports[0], 200)

	proxy := envoyproxy.StartWith(t, envoyproxy.Options{Program: program}, documentedTLS(t, ofEnvoy, c.replace(protocol)...))
	proxy.AwaitReady()
	awaitStatus(t, proxy, ports[0], 200)
	if got := c.serial.Load(); got != serial {
		t.Errorf("the Envoy came with the certificate %s, want %s", got, serial)
	}

	// The Envoy rotates first: the server takes both authorities meanwhile.
	ofServer.rotate(controlPlane, old, old, next)
	c.reload()
	serial = ofEnvoy.rotate(edgeIdentity, next, old, next)
	proxy.Await("the new certificate", func() bool { return hasCertificate(proxy, serial) })
	c.answer(ports[0], 201) // by the old connection
	awaitStatus(t, proxy, ports[0], 201)

	// Then the server, which knows the new authority alone.
	ofServer.rotate(controlPlane, next, next)
	c.reload()
	c.again()
	proxy.Await("the Envoy, with the new certificate", func() bool { return c.serial.Load() == serial })
	c.answer(ports[0], 202)
	awaitStatus(t, proxy, ports[0], 202)
	c.Accepted()
	for cause, n := range c.clients.Refusals() {
		if n > 0 {
			t.Errorf("%d refusals: %s", n, cause)
		}
	}
}

// hasCertificate reports whether an Envoy has a certificate with a number.
func hasCertificate(proxy *envoyproxy.Proxy, serial string) bool {
	for _, c := range proxy.Certificates() {
		for _, link := range c.GetCertChain() {
			if n, ok := new(big.Int).SetString(link.GetSerialNumber(), 16); ok && n.String() == serial {
				return true
			}
		}
	}
	return false
}

func (c *checked) reload() {
	c.TB.Helper()
	if err := c.tls.Reload(); err != nil {
		c.TB.Fatal(err)
	}
}

// replace are the texts of docs/envoy.md that are others here.
func (c *checked) replace(protocol string) []string {
	c.TB.Helper()
	host, port, err := net.SplitHostPort(c.Address)
	if err != nil {
		c.TB.Fatal(err)
	}
	return []string{`"address": "control-plane.example.com"`, fmt.Sprintf(`"address": %q`, host), "15010", port, "9901", "0", "DELTA_GRPC", protocol}
}

// answer has the gateway answer everything with a status.
func (c *checked) answer(port uint32, code int) {
	c.TB.Helper()
	c.Apply(fmt.Sprintf("%s[{directResponse: {status: %d}}]", shopGateway, code), "HTTPPORT", fmt.Sprint(port))
	c.Flush()
}

func awaitStatus(t *testing.T, proxy *envoyproxy.Proxy, port uint32, want int) {
	t.Helper()
	proxy.Await(http.StatusText(want), func() bool {
		got, err := statusOf(t, local(fmt.Sprint(port)), "shop.example.com")
		return err == nil && got == want
	})
}

// TestImpostor: an Envoy that claims another namespace than its certificate's gets nothing, however
// often it tries, and its log says why.
func TestImpostor(t *testing.T) {
	eachProtocol(t, func(t *testing.T, delta bool) {
		t.Helper()
		issuer := issuing.New(t)
		ofServer, ofEnvoy := newVolume(t), newVolume(t)
		ofServer.rotate(controlPlane, issuer, issuer)
		ofEnvoy.rotate(strings.Replace(edgeIdentity, "ingress", "evil", 1), issuer, issuer)
		c := startChecked(t, ofServer, "")
		c.answer(envoyproxy.FreePorts(t, 1)[0], 200)
		protocol := map[bool]string{false: "GRPC", true: "DELTA_GRPC"}[delta]
		proxy := envoyproxy.StartWith(t, envoyproxy.Options{}, documentedTLS(t, ofEnvoy, c.replace(protocol)...))
		proxy.Await("refusals", func() bool { return c.clients.Refusals()[authn.CauseNamespace] >= 3 })
		if n := len(c.Server.Proxies()); n > 0 || c.serial.Load() != "" {
			t.Errorf("%d proxies are served", n)
		}
		if got := proxy.Listeners(); len(got) > 0 {
			t.Errorf("it has listeners: %v", got)
		}
		if got := proxy.Resources("dynamic_active_clusters"); len(got) > 0 {
			t.Errorf("it has clusters: %v", got)
		}
		proxy.Await("the reason in its log", func() bool {
			return strings.Contains(string(proxy.Log()), `claims the namespace "ingress"`)
		})
	})
}
