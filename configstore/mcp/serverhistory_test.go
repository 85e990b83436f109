// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/test/histories"
)

// TestServerHistory: over any writes, in batches or not, and any disconnects, the clients' content
// equals the content of the cache for their revision, whenever the system is quiet.
func TestServerHistory(t *testing.T) {
	const rounds = 30
	for _, seed := range histories.Seeds(t, 6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { serverHistory(t, rand.New(rand.NewPCG(seed, 23)), rounds) }) //nolint:gosec // no secret
		})
	}
}

// historyClient is a client of a revision, by SotW or by delta.
type historyClient struct {
	id, revision string
	delta        bool
	*answers
}

// connect opens its stream; by delta it sends its versions.
func (c *historyClient) connect(e *exporter) {
	node := controlPlane(c.id, c.revision)
	if c.delta {
		c.answers = deltaClient(e.tb, e.listener, node, c.answers, stockTypes()...)
	} else {
		c.answers = stockClient(e.tb, e.listener, node, nil, stockTypes()...)
	}
}

func serverHistory(t *testing.T, random *rand.Rand, rounds int) {
	t.Helper()
	e := export(t, ServerOptions{})
	var clients []*historyClient
	for _, revision := range []string{"", "stable", "canary"} {
		for _, delta := range []bool{false, true} {
			c := &historyClient{id: fmt.Sprint(revision, delta), revision: revision, delta: delta}
			c.connect(e)
			clients = append(clients, c)
		}
	}
	for round := range rounds {
		for range random.IntN(8) {
			historyWrite(e, random)
			if random.IntN(3) == 0 {
				synctest.Wait() // a push has it, not only those after it
			}
		}
		if random.IntN(4) == 0 {
			c := clients[random.IntN(len(clients))]
			c.end()
			historyWrite(e, random)
			c.connect(e)
		}
		e.settle()
		for _, c := range clients {
			same(t, fmt.Sprintf("round %d: %s", round, c.id), c.contents(), e.wanted(c.revision))
		}
		if t.Failed() {
			return
		}
	}
}

// historyWrite commits one change, or several at once.
func historyWrite(e *exporter, random *rand.Rand) {
	e.tb.Helper()
	var batch []configstore.Mutation
	for range 1 + random.IntN(4)*random.IntN(2) {
		namespace, name := []string{"shop", "bank"}[random.IntN(2)], fmt.Sprint("o", random.IntN(6))
		c := entry(namespace, name, fmt.Sprintf("h%d.example.com", random.IntN(3)))
		if random.IntN(3) == 0 {
			c = rule(namespace, name)
		}
		if revision := []string{"", "stable", "canary"}[random.IntN(3)]; revision != "" {
			c = labelled(c, revision)
		}
		op := configstore.OpUpsert
		if random.IntN(3) == 0 {
			op = configstore.OpDelete
		}
		batch = append(batch, configstore.Mutation{Op: op, Config: c})
	}
	if _, err := e.Apply(batch...); err != nil && !errors.Is(err, configstore.ErrNotFound) {
		e.tb.Fatal(err)
	}
}
