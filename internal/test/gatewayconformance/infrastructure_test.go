// SPDX-License-Identifier: Apache-2.0

package gatewayconformance

import (
	"context"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	bootstrap "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	"google.golang.org/protobuf/encoding/protojson"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/pilotkit/pilotkit/configstore/kube/gatewayapi"
	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
)

// adminPort is the one of an Envoy's administration page.
const adminPort = 15000

// envoys is the Infrastructure of the tests: one Envoy for each Gateway, in a Pod.
type envoys struct {
	node    *node
	program envoyproxy.Program
	server  string // the address of the ADS server
	client  *http.Client

	mu      sync.Mutex
	running map[gatewayapi.Key]*envoyPod
}

// envoyPod is the Envoy of a Gateway.
type envoyPod struct {
	*container
	pod *corev1.Pod
}

func newEnvoys(n *node, program envoyproxy.Program, server string) *envoys {
	return &envoys{
		node: n, program: program, server: server, running: map[gatewayapi.Key]*envoyPod{},
		client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
	}
}

// Ensure implements gatewayapi.Infrastructure.
func (e *envoys) Ensure(ctx context.Context, d gatewayapi.Desired) (gatewayapi.Provided, error) {
	address, refused := chooseAddress(d.Addresses)
	if refused.Reason != "" {
		return refused, e.Remove(ctx, d.Gateway)
	}
	pod := podOf(&d)
	if has := e.get(d.Gateway); has != nil {
		if maps.Equal(has.pod.Labels, pod.Labels) && maps.Equal(has.pod.Annotations, pod.Annotations) && (address == "" || address == has.address) {
			return provided(has.address), nil
		}
		if err := e.Remove(ctx, d.Gateway); err != nil {
			return gatewayapi.Provided{}, err
		}
	}
	c, err := e.node.run(ctx, pod, address, func(address string) (*exec.Cmd, error) { return e.command(pod, address) }, e.isReady)
	if err != nil {
		return gatewayapi.Provided{}, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running[d.Gateway] = &envoyPod{c, pod}
	return provided(c.address), nil
}

// Remove implements gatewayapi.Infrastructure.
func (e *envoys) Remove(ctx context.Context, gateway gatewayapi.Key) error {
	if has := e.get(gateway); has != nil {
		e.node.end(ctx, has.pod.Namespace, has.pod.Name, has.container)
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.running, gateway)
	}
	return nil
}

func (e *envoys) get(gateway gatewayapi.Key) *envoyPod {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.running[gateway]
}

// stop ends all Envoys.
func (e *envoys) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, has := range e.running {
		has.stop()
	}
}

func provided(address string) gatewayapi.Provided {
	return gatewayapi.Provided{
		Ready: true, Addresses: []gatewayv1.GatewayStatusAddress{{Type: new(gatewayv1.IPAddressType), Value: address}},
	}
}

// chooseAddress returns the address that a Gateway requests, "" if it may be any, or the reason why
// it cannot have the requested one.
func chooseAddress(wanted []gatewayv1.GatewaySpecAddress) (address string, refused gatewayapi.Provided) {
	for _, a := range wanted {
		if a.Type != nil && *a.Type != gatewayv1.IPAddressType {
			return "", gatewayapi.Provided{Reason: gatewayv1.GatewayReasonUnsupportedAddress, Message: "there are only addresses of type IPAddress"}
		}
	}
	network := netip.PrefixFrom(netip.MustParseAddr(hostAddress), prefixLength).Masked()
	for _, a := range wanted {
		if a.Value == "" {
			continue
		}
		if ip, err := netip.ParseAddr(a.Value); err != nil || !network.Contains(ip) {
			return "", gatewayapi.Provided{Reason: gatewayv1.GatewayReasonAddressNotUsable, Message: a.Value + " is not of the network"}
		}
		address = a.Value
	}
	return address, gatewayapi.Provided{}
}

// podOf returns the Pod of a Gateway's Envoy.
func podOf(d *gatewayapi.Desired) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: d.Gateway.Namespace, Name: d.Gateway.Name + "-envoy", Labels: map[string]string{}, Annotations: map[string]string{},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "envoy", Image: "envoy"}}},
	}
	maps.Copy(pod.Labels, d.Labels)
	maps.Copy(pod.Annotations, d.Annotations)
	pod.Labels[gatewayv1.GatewayNameLabelKey] = d.Gateway.Name
	return pod
}

// command returns the command of an Envoy.
func (e *envoys) command(pod *corev1.Pod, address string) (*exec.Cmd, error) {
	b, err := envoyproxy.Bootstrap(envoyproxy.Options{
		Server: e.server, Delta: !*sotw,
		Node: envoyproxy.Node{Name: pod.Name, Namespace: pod.Namespace, IP: address, Labels: pod.Labels},
	})
	if err != nil {
		return nil, err
	}
	b.Admin = &bootstrap.Admin{Address: envoyproxy.Address(address, adminPort)}
	data, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(b)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(e.node.dir, pod.Name)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "bootstrap.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return nil, err
	}
	args := []string{"-c", file, "--use-dynamic-base-id", "--disable-hot-restart", "--concurrency", "1", "-l", "warning"}
	cmd := exec.Command(e.program.Path, args...) //nolint:noctx // It is stopped.
	cmd.Dir = dir
	return cmd, nil
}

// isReady reports whether an Envoy has its first listeners.
func (e *envoys) isReady(ctx context.Context, address string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(address, "15000")+"/ready", nil)
	if err != nil {
		return false
	}
	response, err := e.client.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body) // Only the status counts.
	return response.StatusCode == http.StatusOK
}
