// SPDX-License-Identifier: Apache-2.0

// Command apiserver is a kube-apiserver with an etcd in the same process.
//
//	apiserver ETCD_DIR flags of kube-apiserver...
//
// The etcd keeps its data in ETCD_DIR, listens on free ports of the loopback
// interface, and needs no flag: --etcd-servers is added for it. A server that was
// killed continues on the same folder with the same content.
//
// The process ends when its standard input does, so that it never outlives the
// process that started it.
package main

import (
	"fmt"
	"io"
	"net/url"
	"os"

	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: apiserver ETCD_DIR [flags of kube-apiserver]")
		os.Exit(2)
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	etcd, err := startEtcd(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "etcd:", err)
		os.Exit(1)
	}
	command := app.NewAPIServerCommand()
	command.SetArgs(append(os.Args[2:], "--etcd-servers=http://"+etcd.Clients[0].Addr().String()))
	code := cli.Run(command)
	etcd.Close()
	os.Exit(code)
}

// startEtcd returns when the etcd answers.
func startEtcd(dir string) (*embed.Etcd, error) {
	cfg := embed.NewConfig()
	cfg.Dir = dir
	anyPort := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = anyPort, anyPort
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = anyPort, anyPort
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.LogLevel = "error"
	cfg.UnsafeNoFsync = true // The data has to survive the process, not the machine.
	etcd, err := embed.StartEtcd(cfg)
	if err != nil {
		return nil, err
	}
	select {
	case <-etcd.Server.ReadyNotify():
		return etcd, nil
	case err := <-etcd.Err():
		return nil, err
	}
}
