// SPDX-License-Identifier: Apache-2.0

// Command kubernetes is a control plane for a Kubernetes cluster: it serves the cluster's Services,
// and its Istio resources, to xDS clients.
//
//	kubectl apply -f https://raw.githubusercontent.com/istio/api/v1.31.1/kubernetes/customresourcedefinitions.gen.yaml
//	kubectl apply -f manifests/
//
// or, outside of the cluster:
//
//	go run . -kubeconfig ~/.kube/config
//
// It becomes ready and starts to serve xDS when it has read everything in the cluster. With -lease
// it also writes statuses; of several replicas the one that holds the Lease does.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM) //nolint:forbidigo // main has no caller
	defer cancel()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "kubernetes:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to clean up
	}
}

// settings are the flags.
type settings struct {
	// listen and probes are the addresses of xDS and of readiness probes.
	listen, probes string
	// cluster is the name of this cluster, domain the suffix of its host names, and revision the
	// value of istio.io/rev to serve, or "".
	cluster, domain, revision string
	// lease is "namespace/name"; "" writes no statuses.
	lease string
	log   *slog.Logger
}

// run returns an error if the program has failed. A request for help is not an error.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("kubernetes", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // main prints the error
	s := settings{log: slog.New(slog.NewTextHandler(out, nil))}
	kubeconfig := flags.String("kubeconfig", "", "`file` that says how to reach the cluster; without it the program runs in it")
	flags.StringVar(&s.listen, "listen", "127.0.0.1:15010", "`address` to serve xDS on")
	flags.StringVar(&s.probes, "probes", "127.0.0.1:8080", "`address` to answer probes on")
	flags.StringVar(&s.cluster, "cluster", "Kubernetes", "`name` of the cluster")
	flags.StringVar(&s.domain, "domain", "cluster.local", "`suffix` of the cluster's host names")
	flags.StringVar(&s.revision, "revision", "", "serve the objects of this `revision`, and those without one")
	flags.StringVar(&s.lease, "lease", "", "write statuses while holding this Lease, `namespace/name`")
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(out)
		flags.Usage()
		return nil
	}
	switch {
	case err != nil:
		return err
	case flags.NArg() > 0:
		return fmt.Errorf("unknown argument %q; -h shows what there is", flags.Arg(0))
	case s.lease != "" && strings.Count(s.lease, "/") != 1:
		return fmt.Errorf("-lease %q is not of the form namespace/name", s.lease)
	}
	config, err := restConfig(*kubeconfig)
	if err != nil {
		return err
	}
	p, err := newPlane(config, s) //nolint:contextcheck // Nothing runs yet.
	if err != nil {
		return err
	}
	return p.run(ctx)
}

func restConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		return rest.InClusterConfig()
	}
	return clientcmd.BuildConfigFromFlags("", kubeconfig)
}
