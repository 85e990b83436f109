// SPDX-License-Identifier: Apache-2.0

package gatewayconformance

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// serveLogs serves the requests of the API server to a kubelet: the logs of Pods. It returns the
// server, which the caller closes.
func (n *node) serveLogs(ctx context.Context) (*httptest.Server, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", hostAddress+":0")
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", n.answerLogs)
	server := httptest.NewUnstartedServer(mux)
	server.Listener.Close()
	server.Listener = listener
	server.StartTLS()
	return server, n.register(ctx, listener.Addr().(*net.TCPAddr).Port)
}

// register creates the Node, which says where its kubelet is.
func (n *node) register(ctx context.Context, port int) error {
	nodes := n.client.CoreV1().Nodes()
	object, err := nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create the Node: %w", err)
	}
	object.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: hostAddress}}
	object.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(port) //nolint:gosec // A port.
	object.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	_, err = nodes.UpdateStatus(ctx, object, metav1.UpdateOptions{})
	return err
}

func (n *node) answerLogs(w http.ResponseWriter, r *http.Request) {
	log, found := n.logs.Load(r.PathValue("namespace") + "/" + r.PathValue("pod"))
	if !found {
		http.NotFound(w, r)
		return
	}
	var begin time.Time
	if text := r.FormValue("sinceTime"); text != "" {
		var err error
		if begin, err = time.Parse(time.RFC3339, text); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	_, _ = io.WriteString(w, log.(*podLog).since(begin)) // The API server may have gone.
}
