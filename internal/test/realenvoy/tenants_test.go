// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// tenants share the HTTPS port of a gateway: each has a host NAME.example.com, a
// certificate NAME, and a VirtualService that answers with a body.
type tenants struct {
	*plane
	proxy     *envoyproxy.Proxy
	port      string
	authority *authority
}

// soon is much longer than the delay that a neighbour may cause, and much shorter than the 15
// seconds that Envoy waits for missing resources.
const soon = 5 * time.Second

func newTenants(t *testing.T, names ...string) *tenants {
	t.Helper()
	x := &tenants{
		plane: startPlane(t, planeOptions{mesh: withoutMeshTLS()}), port: strconv.Itoa(int(envoyproxy.FreePorts(t, 1)[0])),
		authority: newAuthority(t),
	}
	for _, name := range names {
		x.add(name)
	}
	x.Flush()
	return x
}

// add adds a tenant, without a certificate.
func (x *tenants) add(name string) {
	x.Apply(`
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: NAME, namespace: ingress}
spec:
  selector: {app: edge}
  servers:
  - port: {number: PORT, name: https, protocol: HTTPS}
    bind: 127.0.0.1
    hosts: [NAME.example.com]
    tls: {mode: SIMPLE, credentialName: NAME}
`, "NAME", name, "PORT", x.port)
	x.answer(name, "hello")
}

// answer has requests for a tenant answered with a body.
func (x *tenants) answer(name, body string) {
	x.Apply(`
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: NAME, namespace: ingress}
spec:
  hosts: [NAME.example.com]
  gateways: [NAME]
  http: [{directResponse: {status: 200, body: {string: BODY}}}]
`, "NAME", name, "BODY", body)
}

// certify gives a tenant a certificate.
func (x *tenants) certify(name string) {
	x.vault.set("ingress", "kubernetes://"+name, x.authority.secret(name+".example.com"))
}

// get returns the answer to a request for a tenant, on a connection of its own.
func (x *tenants) get(name string) (body string, err error) {
	roots := x509.NewCertPool()
	roots.AddCert(x.authority.certificate)
	transport := newTransport(x.TB)
	transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", local(x.port))
	}
	defer transport.CloseIdleConnections()
	res, err := (&http.Client{Transport: transport, Timeout: soon}).Get("https://" + name + ".example.com/") //nolint:noctx // bounded
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	text := string(data)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d: %s", res.StatusCode, text)
	}
	return text, err
}

// answers waits until a tenant's requests are answered with a body, and logs how long
// that took.
func (x *tenants) answers(name, body string) {
	x.TB.Helper()
	begun := time.Now()
	for {
		got, err := x.get(name)
		if err == nil && got == body {
			break
		}
		if time.Since(begun) > soon {
			x.TB.Fatalf("%s: %q, %v; want %q", name, got, err, body)
		}
	}
	x.TB.Logf("%s answers %q after %v", name, body, time.Since(begun).Round(time.Millisecond))
}

// refuses fails the test if a tenant's connections are not closed.
func (x *tenants) refuses(name string) {
	x.TB.Helper()
	if got, err := x.get(name); err == nil || strings.Contains(err.Error(), "status") {
		x.TB.Errorf("%s: %q, %v; want no connection", name, got, err)
	}
}

// TestMissingSecret: a secret that does not exist keeps nothing from others, neither when
// the gateway starts nor later, and its own connections work when it is there.
func TestMissingSecret(t *testing.T) {
	eachProtocol(t, func(t *testing.T, delta bool) {
		t.Helper()
		x := newTenants(t, "a", "absent", "b")
		x.certify("a")
		x.certify("b")
		x.proxy = x.edge(delta)
		x.answers("a", "hello")
		x.answers("b", "hello")
		x.refuses("absent")

		for i := range 3 { // secrets that are missing come while it runs
			x.add("absent" + strconv.Itoa(i))
			x.answer("a", "hello "+strconv.Itoa(i))
			x.add("c" + strconv.Itoa(i))
			x.certify("c" + strconv.Itoa(i))
			x.answers("c"+strconv.Itoa(i), "hello")
			x.answers("a", "hello "+strconv.Itoa(i))
		}
		x.certify("absent")
		x.certify("absent1")
		x.answers("absent", "hello")
		x.answers("absent1", "hello")
		x.refuses("absent0")
		x.Applied()
		x.Accepted()
	})
}

// addWithFiles adds a tenant whose certificate is in files of the proxy.
func (x *tenants) addWithFiles(name, dir string) {
	x.Apply(`
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: NAME, namespace: ingress}
spec:
  selector: {app: edge}
  servers:
  - port: {number: PORT, name: https, protocol: HTTPS}
    bind: 127.0.0.1
    hosts: [NAME.example.com]
    tls: {mode: SIMPLE, serverCertificate: DIR/cert.pem, privateKey: DIR/key.pem}
`, "NAME", name, "PORT", x.port, "DIR", dir)
	x.answer(name, "hello")
}

// TestRefusedSecret: a secret that the proxy rejects does not affect others, is shown until it is
// accepted, and works when its missing part exists.
func TestRefusedSecret(t *testing.T) {
	eachProtocol(t, func(t *testing.T, delta bool) {
		t.Helper()
		x := newTenants(t, "a", "c", "d", "e", "f")
		dir := t.TempDir()
		x.addWithFiles("b", dir) // there are no such files
		for _, name := range []string{"a", "c", "d", "e", "f"} {
			x.certify(name)
		}
		x.Flush()
		x.proxy = x.edge(delta)
		for _, name := range []string{"a", "c", "d", "e", "f"} {
			x.answers(name, "hello")
		}
		x.refuses("b")
		for _, name := range []string{"c", "d"} { // three rotate, and one of them is another's
			x.certify(name)
		}
		x.addWithFiles("g", dir+"/g")
		x.answer("f", "changed")
		x.answers("f", "changed")
		x.proxy.Await("both are refused", func() bool { return len(x.refused()) == 2 })
		if err := x.Server.WaitApplied(x.context(), nil); !errors.Is(err, ads.ErrRejected) {
			t.Errorf("WaitApplied = %v, want that something is rejected", err)
		}
		s := x.authority.secret("b.example.com")
		for file, content := range map[string][]byte{"cert.pem": s.Certificate, "key.pem": s.Key} {
			if err := os.WriteFile(filepath.Join(dir, file), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		x.proxy.Await("the files are taken", func() bool { return len(x.refused()) == 1 })
		x.answers("b", "hello")
		x.answers("a", "hello")
	})
}

// refused are the secrets that the proxy refuses.
func (x *tenants) refused() []string {
	var out []string
	faults, _ := x.Server.Faults()
	for _, f := range faults {
		if errors.Is(&f, ads.ErrRejected) {
			out = append(out, f.Name)
		}
	}
	return out
}
