// SPDX-License-Identifier: Apache-2.0

package gatewayconformance

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// container is a program that a Pod runs, alone.
type container struct {
	*process
	address string
	log     *podLog
}

// program makes the command of a Pod with an address.
type program func(address string) (*exec.Cmd, error)

// run creates a Pod and runs a program in it. ready is called again and again until it is
// true; then the Pod is ready. The Pod's address is a given one, or a new one.
func (n *node) run(ctx context.Context, pod *corev1.Pod, address string, program program, ready func(context.Context, string) bool) (*container, error) {
	if address == "" {
		address = n.network.address()
	}
	cmd, err := program(address)
	if err != nil {
		return nil, err
	}
	c := &container{address: address, log: &podLog{}}
	cmd.Stdout, cmd.Stderr = c.log, c.log
	pod.Spec.NodeName = nodeName
	pod, err = n.client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	if c.process, err = n.network.start(cmd, address); err != nil {
		return nil, fmt.Errorf("start Pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	n.logs.Store(pod.Namespace+"/"+pod.Name, c.log)
	if err := c.await(ctx, ready); err != nil {
		n.end(ctx, pod.Namespace, pod.Name, c)
		return nil, fmt.Errorf("Pod %s/%s: %w: %s", pod.Namespace, pod.Name, err, c.log.tail())
	}
	pod.Status = running(address, pod)
	if _, err := n.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
		n.end(ctx, pod.Namespace, pod.Name, c)
		return nil, err
	}
	return c, nil
}

// await returns when the program is ready.
func (c *container) await(ctx context.Context, ready func(context.Context, string) bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for !ready(ctx, c.address) {
		select {
		case <-again.C:
		case <-c.ended:
			return fmt.Errorf("has ended: %v", c.cmd.ProcessState)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// end stops the program of a Pod, and deletes the Pod, even if the caller's context has ended.
func (n *node) end(ctx context.Context, namespace, name string, c *container) {
	c.stop()
	n.logs.Delete(namespace + "/" + name)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	err := n.client.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
	if err != nil {
		n.logger.Warn("delete Pod", slog.String("pod", namespace+"/"+name), slog.Any("error", err))
	}
}

// running is the status of a Pod that is ready.
func running(address string, pod *corev1.Pod) corev1.PodStatus {
	now := metav1.Now()
	status := corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}}, HostIP: hostAddress, StartTime: &now,
	}
	for _, of := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: of, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	for _, c := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		})
	}
	return status
}

// accepts reports whether somebody accepts connections at an address and a port.
func accepts(ctx context.Context, address, port string) bool {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(address, port))
	if err != nil {
		return false
	}
	return conn.Close() == nil
}

// command returns the command of a container with a file system of its own, which has the program
// and the files of its volumes.
func command(root, program string, pod *corev1.Pod, files map[string][]byte) (*exec.Cmd, error) {
	if err := os.Link(program, filepath.Join(root, filepath.Base(program))); err != nil {
		return nil, err
	}
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // As in a container.
			return nil, err
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return nil, err
		}
	}
	cmd := exec.Command("/" + filepath.Base(program)) //nolint:noctx // It is stopped.
	cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Chroot: root}
	cmd.Env = []string{} // not that of this process
	for _, v := range pod.Spec.Containers[0].Env {
		value := v.Value
		if v.ValueFrom != nil && v.ValueFrom.FieldRef != nil {
			value = map[string]string{"metadata.name": pod.Name, "metadata.namespace": pod.Namespace}[v.ValueFrom.FieldRef.FieldPath]
		}
		cmd.Env = append(cmd.Env, v.Name+"="+value)
	}
	return cmd, nil
}

// podLog keeps the output of a program, by lines and their times.
type podLog struct {
	mu    sync.Mutex
	rest  []byte
	lines []logLine
}

type logLine struct {
	at   time.Time
	text string
}

// Write implements io.Writer.
func (l *podLog) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, data...)
	for {
		line, rest, found := bytes.Cut(l.rest, []byte("\n"))
		if !found {
			return len(data), nil
		}
		l.lines, l.rest = append(l.lines, logLine{time.Now(), string(line)}), rest
	}
}

// since returns the lines that were written at a time or later.
func (l *podLog) since(begin time.Time) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var b strings.Builder
	for _, line := range l.lines {
		if !line.at.Before(begin) {
			b.WriteString(line.text + "\n")
		}
	}
	return b.String()
}

func (l *podLog) tail() string {
	const size = 2000
	text := l.since(time.Time{})
	return text[max(0, len(text)-size):]
}
