// SPDX-License-Identifier: Apache-2.0

package gatewayconformance

import (
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"runtime"
	"sync"
	"syscall"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// The addresses of the network: of this process, of Pods, which have them in order, and of Gateways
// with a requested address.
const (
	hostAddress   = "10.244.0.1"
	firstPod      = "10.244.1.0"
	staticUsable  = "10.244.200.1"
	staticOutside = "10.245.0.1"
	prefixLength  = 16
)

// network is a bridge in the network namespace of this process, with the Pods attached.
type network struct {
	bridge netlink.Link
	host   *netlink.Handle // of this process's namespace, regardless of the thread that uses it

	mu   sync.Mutex
	last netip.Addr
	made int
}

// newNetwork makes the bridge. The namespace is this process's alone.
func newNetwork() (*network, error) {
	if err := up("lo"); err != nil {
		return nil, err
	}
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "pods"}}
	if err := netlink.LinkAdd(bridge); err != nil {
		return nil, fmt.Errorf("make a bridge: %w", err)
	}
	if err := configure("pods", hostAddress); err != nil {
		return nil, err
	}
	// The API server looks for the address of a host that has a way out.
	if err := netlink.RouteAdd(&netlink.Route{LinkIndex: bridge.Index, Scope: netlink.SCOPE_LINK, Dst: defaultRoute()}); err != nil {
		return nil, fmt.Errorf("add a default route: %w", err)
	}
	host, err := netlink.NewHandle()
	if err != nil {
		return nil, err
	}
	return &network{bridge: bridge, host: host, last: netip.MustParseAddr(firstPod)}, nil
}

func defaultRoute() *net.IPNet {
	return &net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, 8*net.IPv4len)}
}

// up sets an interface of the calling thread's namespace up.
func up(name string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("find the interface %s: %w", name, err)
	}
	return netlink.LinkSetUp(link)
}

// configure gives an interface of the calling thread's namespace an address.
func configure(name, address string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("find the interface %s: %w", name, err)
	}
	of := &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP(address), Mask: net.CIDRMask(prefixLength, 8*net.IPv4len)}}
	if err := netlink.AddrAdd(link, of); err != nil {
		return fmt.Errorf("add the address %s: %w", address, err)
	}
	return netlink.LinkSetUp(link)
}

// address returns one that no Pod has had.
func (n *network) address() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last = n.last.Next()
	return n.last.String()
}

// process is a program that runs in a network namespace of its own.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// start starts a program in a new network namespace that has an address, which ends with it.
func (n *network) start(cmd *exec.Cmd, address string) (*process, error) {
	p := &process{cmd: cmd, ended: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		defer close(p.ended)
		// The thread is in the new namespace, so that nothing else may use it: it ends with this
		// goroutine, and the process, which would be killed with it, before.
		runtime.LockOSThread()
		err := n.attach(address)
		if err == nil {
			if cmd.SysProcAttr == nil {
				cmd.SysProcAttr = &syscall.SysProcAttr{}
			}
			cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
			err = cmd.Start()
		}
		started <- err
		if err == nil {
			_ = cmd.Wait() // It was killed, or its log says why it ended.
		}
	}()
	return p, <-started
}

// attach moves the calling thread to a new namespace, and connects that to the bridge.
func (n *network) attach(address string) error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("make a network namespace: %w", err)
	}
	namespace, err := netns.Get()
	if err != nil {
		return err
	}
	defer namespace.Close()
	n.mu.Lock()
	n.made++
	name := fmt.Sprintf("pod%d", n.made)
	n.mu.Unlock()
	if err := n.host.LinkAdd(&netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: name, MasterIndex: n.bridge.Attrs().Index, Flags: net.FlagUp},
		PeerName:  "eth0", PeerNamespace: netlink.NsFd(int(namespace)),
	}); err != nil {
		return fmt.Errorf("make a pair of interfaces: %w", err)
	}
	if err := up("lo"); err != nil {
		return err
	}
	return configure("eth0", address)
}

// stop ends the program, and returns when it has ended.
func (p *process) stop() {
	_ = p.cmd.Process.Kill() // It may have ended.
	<-p.ended
}
